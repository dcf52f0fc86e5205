//! `fcntl` locks: replacing, splitting, joining, testing, and how they end.

use super::super::{ByteRange, LockKind, LockOwner};
use super::{Exclusive, HandleId, RangeLock, RangeLocks, Shared, fcntl, range, smb};

const P: u64 = 1;
const Q: u64 = 2;

fn holding(locks: &[RangeLock]) -> RangeLocks {
    let mut table = RangeLocks::default();
    for lock in locks {
        table.lock(*lock).expect("the locks of a test are granted");
    }
    table
}

fn bytes(first: u64, last: u64) -> ByteRange {
    ByteRange::from_posix(first, last).expect("first before last")
}

/// The locks of the owner, by position.
fn held(table: &RangeLocks, owner: u64) -> Vec<(u64, u64, LockKind)> {
    let own = table.iter().filter(|lock| lock.owner == LockOwner::Posix(owner));
    let mut spans: Vec<_> =
        own.map(|lock| (lock.range.start(), lock.range.to_posix().1, lock.kind)).collect();
    spans.sort_by_key(|span| span.0);
    spans
}

#[test]
fn the_test_names_a_lock_in_the_way_with_its_pid() {
    let mut theirs = fcntl(Q, 4, 8, Exclusive);
    theirs.pid = 4711;
    let table = holding(&[fcntl(P, 0, 3, Exclusive), theirs]);
    assert_eq!(table.posix_test(P, Shared, bytes(0, 100)), Some(theirs));
    assert_eq!(table.posix_test(P, Exclusive, bytes(0, 3)), None);
    assert_eq!(table.posix_test(Q, Exclusive, bytes(4, 100)), None);
}

#[test]
fn the_test_sees_smb_locks_too() {
    let ours = smb(HandleId(P), 4, 4, Shared);
    let table = holding(&[ours]);
    assert_eq!(table.posix_test(P, Exclusive, bytes(0, 100)), Some(ours));
    assert_eq!(table.posix_test(P, Shared, bytes(0, 100)), None);
}

#[test]
fn a_lock_to_the_end_reaches_every_later_byte() {
    let mut table = holding(&[fcntl(P, 100, i64::MAX.unsigned_abs(), Exclusive)]);
    assert!(table.check_read(None, range(1 << 62, 1)).is_err());
    assert!(table.lock(smb(HandleId(7), u64::MAX, 1, Shared)).is_err());
    assert!(table.check_read(None, range(0, 100)).is_ok());
    assert!(table.lock(fcntl(P, 0, 99, Exclusive)).is_ok());
    assert_eq!(table.len(), 1);
    assert_eq!(table.any().map(|lock| lock.range.length()), Some(1 << 64));
    assert!(table.check_write(None, range(u64::MAX, 1)).is_err());
}

#[test]
fn a_lock_never_stops_its_owner_from_reading_and_writing() {
    let table = holding(&[fcntl(P, 0, 9, Shared)]);
    let (own, other) = (Some(LockOwner::Posix(P)), Some(LockOwner::Posix(Q)));
    assert!(table.check_write(own, range(0, 10)).is_ok());
    assert!(table.check_write(other, range(0, 10)).is_err());
    assert!(table.check_write(None, range(0, 10)).is_err());
    assert!(table.check_read(other, range(0, 10)).is_ok());
}

#[test]
fn a_flush_ends_the_owners_locks_through_every_open() {
    let mut elsewhere = fcntl(P, 20, 29, Shared);
    elsewhere.handle = HandleId(9);
    let mut table = holding(&[fcntl(P, 0, 9, Shared), elsewhere, fcntl(Q, 0, 9, Shared)]);
    assert!(table.release_posix(P));
    assert!(!table.release_posix(P));
    assert_eq!(held(&table, Q), [(0, 9, Shared)]);
    assert_eq!(table.len(), 1);
}

#[test]
fn a_release_ends_all_locks_taken_through_that_open() {
    let open = HandleId(9);
    let mut first = fcntl(P, 0, 9, Shared);
    let mut second = fcntl(Q, 0, 9, Shared);
    (first.handle, second.handle) = (open, open);
    let other_open = fcntl(P, 10, 19, Shared);
    let mut table = holding(&[first, second, other_open, smb(open, 30, 5, Exclusive)]);
    assert!(table.release_taken_through(open));
    assert_eq!(table.iter().collect::<Vec<_>>(), [&other_open]);
    assert!(!table.release_taken_through(open));
}

#[test]
fn pieces_taken_through_different_opens_do_not_join() {
    let mut table = holding(&[fcntl(P, 0, 9, Shared)]);
    let mut next = fcntl(P, 5, 14, Shared);
    next.handle = HandleId(9);
    table.lock(next).unwrap();
    assert_eq!(held(&table, P), [(0, 4, Shared), (5, 14, Shared)]);
    table.release_taken_through(HandleId(9));
    assert_eq!(held(&table, P), [(0, 4, Shared)]);
}

#[test]
fn a_lock_of_no_bytes_locks_nothing() {
    let mut table = RangeLocks::default();
    let nothing = RangeLock::posix(P, HandleId(P), Exclusive, range(5, 0), 0);
    assert!(table.lock(nothing).is_ok());
    assert!(table.is_empty());
    assert!(!table.posix_unlock(P, range(5, 0)));
}
