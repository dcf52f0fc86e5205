//! SMB locks, and reads and writes against any lock. Scenario numbers are those of tests/oracle.

use super::super::{LockKind, LockOwner};
use super::{A, B, C, Exclusive, RangeLock, RangeLocks, RangeNotLocked, Shared, fcntl, of};
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
fn nothing_outside_the_range_is_refused() {
    let mut table = holding(&[smb(A, 5, 1, Exclusive)]);
    assert!(table.check_read(Some(of(B)), range(0, 5)).is_ok(), "br37");
    assert!(table.check_read(Some(of(B)), range(0, 6)).is_err());
    assert!(table.check_write(Some(of(B)), range(6, 4)).is_ok());
    assert!(table.check_write(Some(of(B)), range(0, 10)).is_err());
    assert!(table.lock(smb(B, 6, 4, Exclusive)).is_ok());
}

#[test]
fn a_conflict_names_the_lock_in_the_way() {
    let held = RangeLock::smb(A, Exclusive, range(0, 4), 77);
    let mut table = holding(&[smb(C, 20, 4, Exclusive), held]);
    assert_eq!(table.lock(smb(B, 3, 1, Shared)).unwrap_err().holder, held);
    assert_eq!(table.check_read(None, range(0, 1)).unwrap_err().holder, held);
}

#[test]
fn an_exclusive_lock_neither_merges_nor_upgrades() {
    let mut table = holding(&[smb(A, 0, 10, Exclusive)]); // br06
    assert!(table.lock(smb(A, 0, 10, Exclusive)).is_err());
    assert!(table.lock(smb(A, 5, 10, Exclusive)).is_err());
    assert!(table.lock(smb(A, 0, 10, Shared)).is_ok());
    assert!(table.lock(smb(A, 10, 5, Exclusive)).is_ok());
    let mut table = holding(&[smb(A, 0, 10, Shared)]); // br10
    assert!(table.lock(smb(A, 0, 10, Exclusive)).is_err());
}

#[test]
fn shared_locks_stack_and_one_unlock_takes_one() {
    let mut table = holding(&[smb(A, 0, 10, Shared), smb(A, 0, 10, Shared)]); // br07
    assert!(table.unlock(A, range(0, 10)).is_ok());
    assert!(table.lock(smb(B, 0, 1, Exclusive)).is_err());
    assert!(table.unlock(A, range(0, 10)).is_ok());
    assert!(table.lock(smb(B, 0, 1, Exclusive)).is_ok());
    assert_eq!(table.unlock(A, range(0, 10)), Err(RangeNotLocked));
}

#[test]
fn an_unlock_takes_the_exclusive_lock_first() {
    let mut table = holding(&[smb(A, 0, 10, Exclusive), smb(A, 0, 10, Shared)]); // br51
    assert_eq!(table.unlock(A, range(0, 10)), Ok(smb(A, 0, 10, Exclusive)));
    assert!(table.check_read(Some(of(B)), range(0, 1)).is_ok());
    assert!(table.check_write(Some(of(A)), range(0, 1)).is_err());
    assert_eq!(table.unlock(A, range(0, 10)), Ok(smb(A, 0, 10, Shared)));
    assert!(table.check_write(Some(of(B)), range(0, 1)).is_ok());
}

#[test]
fn an_unlock_must_match_exactly_and_be_of_the_same_open() {
    let mut table = holding(&[smb(A, 0, 10, Exclusive)]); // br08, br09
    for (handle, offset, length) in [(A, 0, 5), (A, 5, 5), (A, 0, 11), (A, 0, 0), (B, 0, 10)] {
        assert_eq!(table.unlock(handle, range(offset, length)), Err(RangeNotLocked));
    }
    assert!(table.unlock(A, range(0, 10)).is_ok());
    assert!(table.is_empty());
}

#[test]
fn closing_an_open_drops_its_locks_only() {
    let mut table = holding(&[smb(A, 0, 4, Exclusive), smb(B, 4, 4, Exclusive)]); // br11
    assert!(table.release_taken_through(A));
    assert!(!table.release_taken_through(A), "nothing left to drop");
    assert!(table.check_write(Some(of(C)), range(0, 4)).is_ok());
    assert!(table.check_write(Some(of(C)), range(4, 4)).is_err());
    assert_eq!(table.len(), 1);
}

#[test]
fn a_lock_of_no_bytes_stops_what_runs_across_it() {
    let mut table = holding(&[smb(A, 5, 0, Exclusive)]); // br13, br15
    assert!(table.check_read(Some(of(B)), range(4, 4)).is_err());
    assert!(table.check_write(Some(of(B)), range(4, 4)).is_err());
    assert!(table.lock(smb(B, 0, 10, Exclusive)).is_err());
    for granted in [smb(B, 5, 0, Exclusive), smb(B, 5, 1, Exclusive), smb(B, 4, 1, Exclusive)] {
        assert!(table.lock(granted).is_ok());
    }
    assert!(table.unlock(A, range(5, 0)).is_ok());
    assert_eq!(table.unlock(A, range(5, 0)), Err(RangeNotLocked));
}

#[test]
fn locks_of_no_bytes_stack_without_conflict() {
    let mut table = holding(&[smb(A, 5, 0, Exclusive), smb(A, 5, 0, Exclusive)]); // br50
    assert!(table.lock(smb(B, 5, 0, Shared)).is_ok());
    assert!(table.lock(smb(B, 4, 2, Shared)).is_err());
    assert!(table.unlock(A, range(5, 0)).is_ok());
    assert!(table.lock(smb(B, 4, 2, Shared)).is_err());
    assert!(table.unlock(A, range(5, 0)).is_ok());
    assert!(table.lock(smb(B, 4, 2, Shared)).is_ok());
}

#[test]
fn a_lock_of_no_bytes_is_refused_only_strictly_inside_a_range() {
    let mut table = holding(&[smb(A, 0, 10, Exclusive)]); // br14
    assert!(table.lock(smb(B, 0, 0, Exclusive)).is_ok());
    assert!(table.lock(smb(B, 5, 0, Exclusive)).is_err());
    assert!(table.lock(smb(B, 10, 0, Exclusive)).is_ok());
}

#[test]
fn locks_work_at_both_ends_of_the_space() {
    let half = 1 << 63;
    let mut table = holding(&[smb(A, half, 10, Exclusive)]); // br17
    assert!(table.lock(smb(B, half + 5, 1, Exclusive)).is_err());
    assert!(table.lock(smb(B, half + 10, 1, Exclusive)).is_ok());
    let mut table = holding(&[smb(A, 0, u64::MAX, Exclusive)]); // br19
    assert!(table.check_read(Some(of(B)), range(0, 1)).is_err());
    assert!(table.lock(smb(B, u64::MAX - 1, 1, Shared)).is_err());
    assert!(table.lock(smb(B, u64::MAX, 1, Shared)).is_ok());
    let mut table = holding(&[smb(A, u64::MAX, 1, Exclusive)]); // br20
    assert!(table.lock(smb(B, u64::MAX, 1, Exclusive)).is_err());
    assert!(table.lock(smb(B, u64::MAX, 0, Exclusive)).is_ok());
    assert!(table.lock(smb(B, u64::MAX - 1, 1, Exclusive)).is_ok());
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
fn several_unlocks_keep_what_went_before_the_first_miss() {
    let mut table = holding(&[smb(A, 0, 1, Exclusive), smb(A, 10, 1, Exclusive)]); // br25
    let misses =
        [0, 5, 10].into_iter().try_for_each(|offset| table.unlock(A, range(offset, 1)).map(drop));
    assert!(misses.is_err());
    assert!(table.lock(smb(B, 0, 1, Exclusive)).is_ok());
    assert!(table.lock(smb(B, 10, 1, Exclusive)).is_err());
}

#[test]
fn reading_and_writing_no_bytes_is_never_refused() {
    let table = holding(&[smb(A, 0, 10, Exclusive)]); // br38
    assert!(table.check_read(Some(of(B)), range(5, 0)).is_ok());
    assert!(table.check_write(None, range(5, 0)).is_ok());
}

#[test]
fn a_write_across_an_own_exclusive_and_a_foreign_shared_lock_is_refused() {
    let table = holding(&[smb(A, 0, 5, Exclusive), smb(B, 5, 5, Shared)]); // br52
    assert!(table.check_write(Some(of(A)), range(0, 5)).is_ok());
    assert!(table.check_write(Some(of(A)), range(0, 6)).is_err());
    assert!(table.check_read(Some(of(A)), range(0, 10)).is_ok());
    assert!(table.check_read(Some(of(B)), range(0, 10)).is_err());
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
