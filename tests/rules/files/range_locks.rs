//! Byte-range locks of SMB against REST, and against the end of a waiting handle.

use std::sync::mpsc;

use latchfs::file::rules::ranges::{ByteRange, LockKind, RangeLock};
use latchfs::file::rules::{Denial, SharePath};
use latchfs::file::service::Handle;

use crate::files::fixture::{Call, Fixture, code};

const CONFLICT: &str = "FileLockConflict";

/// A file of 2,000 bytes whose first ten are locked, by a handle that shares so.
fn locked(fixture: &Fixture, kind: LockKind, share: &str) -> (SharePath, Handle) {
    let path = fixture.file();
    fixture.create(&path, 2_000).unwrap();
    let handle = fixture.open(&path, "rw", share);
    fixture.share.lock(&handle, &[(first_ten(), kind)]).unwrap();
    (path, handle)
}

fn first_ten() -> ByteRange {
    ByteRange::new(0, 10).unwrap()
}

#[test]
fn locks_of_smb_refuse_as_those_of_the_mount_do() {
    use LockKind::{Exclusive, Shared};
    let sharing = "SharingViolation";
    for (kind, share, call, expected) in [
        (Exclusive, "rwd", Call::Put, CONFLICT),
        (Exclusive, "rwd", Call::Clear, CONFLICT),
        (Exclusive, "rwd", Call::Create, CONFLICT),
        (Exclusive, "rwd", Call::Get, CONFLICT),
        (Exclusive, "rwd", Call::ListRanges, "ok"),
        (Exclusive, "rwd", Call::Head, "ok"),
        (Shared, "rwd", Call::Get, "ok"),
        (Shared, "rwd", Call::Put, CONFLICT),
        (Shared, "rwd", Call::Resize, CONFLICT),
        (Shared, "rwd", Call::SetMetadata, "ok"),
        (Shared, "rwd", Call::SetProperties, "ok"),
        (Exclusive, "none", Call::Put, sharing),
        (Exclusive, "none", Call::Get, sharing),
    ] {
        let fixture = Fixture::new();
        let (path, handle) = locked(&fixture, kind, share);
        let answer = || fixture.call(fixture.rest(), &path, call);
        assert_eq!(code(&answer()), expected, "{call:?} against {kind:?}, {share}");
        fixture.share.unlock(&handle, &[first_ten()]).unwrap();
        let unlocked = if share == "none" { sharing } else { "ok" };
        assert_eq!(code(&answer()), unlocked, "{call:?} after {kind:?}");
    }
}

#[test]
fn a_waiting_request_ends_with_its_handle_and_says_whether_that_was_closed_by_force() {
    let fixture = Fixture::new();
    let (path, holder) = locked(&fixture, LockKind::Exclusive, "rwd");
    for forced in [false, true] {
        let waiter = fixture.open(&path, "rw", "rwd");
        let lock = RangeLock::smb(waiter.id(), LockKind::Exclusive, first_ten(), 0);
        let (sender, answer) = mpsc::channel();
        let completion = Box::new(move |got| sender.send(got).unwrap());
        assert!(fixture.share.lock_later(&waiter, lock, completion).unwrap().is_some());
        if forced {
            assert_eq!(fixture.share.force_close(fixture.mount(), waiter.id()).unwrap(), 1);
        } else {
            fixture.share.close(&waiter).unwrap();
        }
        let expected = if forced { Denial::HandleClosed } else { Denial::RangeNotLocked };
        assert_eq!(answer.try_recv().unwrap(), Err(expected));
    }
    fixture.share.close(&holder).unwrap();
}
