//! List Handles, Force Close Handles, and what stands on a file.

use std::sync::{Arc, Mutex};

use latchfs::file::rules::ranges::{ByteRange, LockKind};
use latchfs::file::rules::{Access, Denial};
use latchfs::file::service::{
    ClosedHandle, ForceClosed, HandlePage, LISTENERS_MAX, Obstacle, WhichHandles,
};
use latchfs::rules::lease::FileLease;

use crate::dirs::fixture::{Fixture, caller, denial, lease_id, path};

fn list(it: &Fixture, name: &str, recursive: bool) -> HandlePage {
    it.share().list_handles(&path(name), recursive, None, 5_000).unwrap()
}

fn force_close(it: &Fixture, name: &str, which: WhichHandles) -> u64 {
    let count = it.share().force_close_handles(&caller("rest"), &path(name), which, false).unwrap();
    assert_eq!(count.failed, 0);
    count.closed
}

#[test]
fn listeners_hear_of_each_forced_close_and_of_no_other() {
    let it = Fixture::new();
    it.file("file", b"");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ears = Arc::clone(&heard);
    let listen = move |closed: &_| {
        ears.lock().unwrap().push(Clone::clone(closed));
        Ok(Vec::new())
    };
    it.share().on_force_close(listen).unwrap();
    it.share().close(&it.open("file", "r", "rwd")).unwrap();
    let handles = [it.open("file", "rw", "rwd"), it.pending("file")];
    it.share().force_close(&caller("cli"), handles[0].id()).unwrap();
    force_close(&it, "file", WhichHandles::All);
    let heard: Vec<ClosedHandle> = heard.lock().unwrap().clone();
    let told: Vec<_> = heard.iter().map(|closed| (closed.id, closed.removed)).collect();
    assert_eq!(told, [(handles[0].id(), false), (handles[1].id(), true)]);
    assert_eq!(heard[0].access, Access::RW);
    assert_eq!(heard[0].path, path("file"));
}

#[test]
fn a_forced_close_whose_descriptor_still_works_counts_as_failed() {
    let it = Fixture::new();
    it.file("file", b"");
    let handles = [it.open("file", "rw", "rwd"), it.open("file", "rw", "rwd")];
    let still_works = handles[0].id();
    let listen = move |closed: &ClosedHandle| {
        if closed.id == still_works { Err(Denial::CannotDelete.into()) } else { Ok(Vec::new()) }
    };
    it.share().on_force_close(listen).unwrap();
    let (who, all) = (caller("rest"), WhichHandles::All);
    let count = it.share().force_close_handles(&who, &path("file"), all, false).unwrap();
    assert_eq!(count, ForceClosed { closed: 1, failed: 1 });
    assert!(list(&it, "file", false).handles.is_empty(), "both are gone from the table");
}

#[test]
fn a_share_takes_a_bounded_number_of_listeners() {
    let it = Fixture::new();
    for _ in 0..LISTENERS_MAX {
        it.share().on_force_close(|_| Ok(Vec::new())).unwrap();
    }
    let one_more = it.share().on_force_close(|_| Ok(Vec::new()));
    assert!(matches!(denial(one_more), Denial::InvalidParameter(_)));
}

#[test]
fn why_names_all_that_stands_on_a_file() {
    let mut it = Fixture::new();
    it.file("file", b"12345");
    it.file("free", b"");
    it.read_only("file");
    it.leased("file", lease_id(1));
    let share = it.share();
    assert_eq!(share.why(&path("free")).unwrap(), []);
    let handle = it.open("file", "r", "rwd");
    share.lock(&handle, &[(ByteRange::new(0, 3).unwrap(), LockKind::Shared)]).unwrap();
    let obstacles = share.why(&path("FILE")).unwrap();
    let [Obstacle::Lease(lease), Obstacle::ReadOnly, Obstacle::Open(open), Obstacle::Lock(lock)] =
        &obstacles[..]
    else {
        panic!("{obstacles:?}")
    };
    assert_eq!(*lease, FileLease::Leased(lease_id(1)));
    assert_eq!((open.id, lock.handle), (handle.id(), handle.id()));
    let _keeper = it.pending("free");
    let obstacles = share.why(&path("free")).unwrap();
    assert!(matches!(&obstacles[..], [Obstacle::DeletePending(name), Obstacle::Open(_)]
        if *name == path("free")));
    assert_eq!(denial(share.why(&path("none"))), Denial::NotFound);
}
