//! Byte-range locks against REST, behaviours 119-124, and against the end of a waiting handle.

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
fn b119_a_lock_anywhere_refuses_a_write_everywhere() {
    let fixture = Fixture::new();
    let (path, _handle) = locked(&fixture, LockKind::Exclusive, "rwd");
    assert_eq!(code(&fixture.put(&path, 1_000, &[1; 100])), CONFLICT);
    for call in [Call::Clear, Call::Create] {
        assert_eq!(code(&fixture.call(fixture.rest(), &path, call)), CONFLICT, "{call:?}");
    }
}

#[test]
fn b120_an_exclusive_lock_refuses_reads_of_its_own_bytes() {
    let fixture = Fixture::new();
    let (path, _handle) = locked(&fixture, LockKind::Exclusive, "rwd");
    assert_eq!(fixture.get(&path, Some(1_000..1_100)).unwrap(), [0; 100]);
    assert_eq!(code(&fixture.get(&path, Some(0..100))), CONFLICT);
    assert_eq!(code(&fixture.get(&path, Some(9..10))), CONFLICT);
    assert_eq!(code(&fixture.get(&path, Some(10..11))), "ok");
    assert_eq!(code(&fixture.get(&path, None)), CONFLICT);
    for call in [Call::ListRanges, Call::Head] {
        assert_eq!(code(&fixture.call(fixture.rest(), &path, call)), "ok", "{call:?}");
    }
}

#[test]
fn b121_a_shared_lock_lets_reads_through_and_no_writes() {
    let fixture = Fixture::new();
    let (path, _handle) = locked(&fixture, LockKind::Shared, "rwd");
    assert_eq!(code(&fixture.get(&path, None)), "ok");
    assert_eq!(code(&fixture.put(&path, 0, b"x")), CONFLICT);
}

#[test]
fn b122_a_lock_that_is_gone_refuses_nothing() {
    let fixture = Fixture::new();
    let (path, handle) = locked(&fixture, LockKind::Exclusive, "rwd");
    fixture.share.unlock(&handle, &[first_ten()]).unwrap();
    assert_eq!(code(&fixture.put(&path, 0, b"x")), "ok");
    fixture.share.lock(&handle, &[(first_ten(), LockKind::Exclusive)]).unwrap();
    assert_eq!(code(&fixture.put(&path, 0, b"x")), CONFLICT);
    fixture.share.close(&handle).unwrap();
    assert_eq!(code(&fixture.put(&path, 0, b"x")), "ok");
}

#[test]
fn b123_the_share_mode_is_asked_before_the_lock() {
    let fixture = Fixture::new();
    let (path, _handle) = locked(&fixture, LockKind::Exclusive, "none");
    assert_eq!(code(&fixture.put(&path, 0, b"x")), "SharingViolation");
    assert_eq!(code(&fixture.get(&path, None)), "SharingViolation");
}

#[test]
fn b124_a_lock_refuses_a_resize_and_no_metadata() {
    let fixture = Fixture::new();
    let (path, _handle) = locked(&fixture, LockKind::Shared, "rwd");
    assert_eq!(code(&fixture.call(fixture.rest(), &path, Call::Resize)), CONFLICT);
    for call in [Call::SetMetadata, Call::SetProperties] {
        assert_eq!(code(&fixture.call(fixture.rest(), &path, call)), "ok", "{call:?}");
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
