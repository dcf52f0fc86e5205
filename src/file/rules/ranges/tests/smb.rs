//! SMB locks, and reads and writes against any lock. Scenario numbers are those of tests/oracle.

use super::super::{LockKind, LockOwner};
use super::{A, B, C, Exclusive, RangeLock, RangeLocks, Shared, fcntl, of};
use super::{range, smb};

fn holding(locks: &[RangeLock]) -> RangeLocks {
    let mut table = RangeLocks::default();
    for lock in locks {
        table.lock(*lock).expect("the locks of a test are granted");
    }
    table
}

#[test]
fn the_table_of_lock_against_lock_and_io_holds_row_by_row() {
    // existing kind, asked by; then SH lock, EX lock, read, write
    let rows = [
        (Exclusive, A, [true, false, true, true]),
        (Exclusive, B, [false, false, false, false]),
        (Shared, A, [true, false, true, false]),
        (Shared, B, [true, false, true, false]),
    ];
    for (existing, asker, expected) in rows {
        let table = holding(&[smb(A, 0, 10, existing)]);
        let got = [
            table.clone().lock(smb(asker, 5, 10, Shared)).is_ok(),
            table.clone().lock(smb(asker, 5, 10, Exclusive)).is_ok(),
            table.check_read(Some(of(asker)), range(5, 10)).is_ok(),
            table.check_write(Some(of(asker)), range(5, 10)).is_ok(),
        ];
        assert_eq!(got, expected, "{existing:?} asked by {asker}");
    }
}

#[test]
fn a_conflict_names_the_lock_in_the_way() {
    let held = RangeLock::smb(A, Exclusive, range(0, 4), 77);
    let mut table = holding(&[smb(C, 20, 4, Exclusive), held]);
    assert_eq!(table.lock(smb(B, 3, 1, Shared)).unwrap_err().holder, held);
    assert_eq!(table.check_read(None, range(0, 1)).unwrap_err().holder, held);
}

#[test]
fn several_locks_are_taken_all_or_none() {
    let mut table = holding(&[smb(B, 20, 1, Exclusive)]); // br24
    let wanted = [0, 10, 20].map(|offset| (range(offset, 1), Exclusive));
    let conflict = table.lock_all(A, 0, &wanted).unwrap_err();
    assert_eq!(conflict.holder, smb(B, 20, 1, Exclusive));
    assert_eq!(table.len(), 1);
    assert!(table.lock_all(A, 0, &wanted[..2]).is_ok());
    assert_eq!(table.len(), 3);
}

#[test]
fn several_locks_conflict_among_themselves_as_if_taken_one_by_one() {
    let mut table = RangeLocks::default();
    let twice: [(_, LockKind); 2] = [(range(0, 4), Exclusive), (range(2, 4), Exclusive)];
    assert!(table.lock_all(A, 0, &twice).is_err());
    assert!(table.is_empty());
}

#[test]
fn a_rest_reader_meets_overlapping_exclusive_locks_only() {
    let table = holding(&[smb(A, 0, 4, Exclusive), smb(A, 8, 4, Shared), fcntl(9, 20, 23, Shared)]);
    assert!(table.check_read(None, range(3, 5)).is_err());
    assert!(table.check_read(None, range(4, 100)).is_ok());
}

#[test]
fn a_rest_writer_meets_any_lock_of_the_file() {
    let mut table = RangeLocks::default();
    assert_eq!(table.any(), None);
    let far_away = smb(A, 1 << 40, 1, Shared);
    table.lock(far_away).unwrap();
    assert_eq!(table.any(), Some(&far_away));
    table.release_taken_through(A);
    assert_eq!(table.any(), None);
}

#[test]
fn smb_and_fcntl_locks_are_strangers_to_each_other_even_on_one_open() {
    let through_a = fcntl(A.0, 0, 9, Exclusive);
    let mut table = holding(&[through_a]);
    assert_eq!(table.lock(smb(A, 5, 1, Shared)).unwrap_err().holder, through_a);
    assert!(table.check_read(Some(of(A)), range(5, 1)).is_err());
    assert!(table.check_write(Some(LockOwner::Posix(A.0)), range(5, 1)).is_ok());
    assert!(table.release_taken_through(A));
    assert!(table.lock(smb(A, 5, 1, Exclusive)).is_ok());
    assert!(table.lock(fcntl(A.0, 0, 9, Shared)).is_err());
}

#[test]
fn the_list_of_locks_is_in_the_order_they_were_taken() {
    let taken = [smb(B, 90, 1, Shared), smb(A, 0, 4, Exclusive), smb(B, 50, 500, Shared)];
    let table = holding(&taken);
    assert!(table.iter().eq(taken.iter()));
    assert_eq!(table.len(), 3);
}
