//! The lease of a file: what each action and each use answers, as far as neither disk nor wire
//! is needed.

use super::super::{FileLease, LeaseDenial as D, LeaseOn, LeaseState, LeaseUse};
use super::{A, B, C, X};

const READ: LeaseUse = LeaseUse::Read;
const WRITE: LeaseUse = LeaseUse::Write;

#[test]
fn acquire_without_a_proposal_takes_the_fresh_id() {
    let mut lease = FileLease::default();
    assert_eq!(lease.acquire(Some(-1), None, X), Ok(X));
    assert_eq!(lease, FileLease::Leased(X));
}

#[test]
fn a_file_lease_must_be_asked_for_as_infinite() {
    let mut lease = FileLease::default();
    for seconds in [30, 15, 60, 0, 1, -2, i64::MAX, i64::MIN] {
        assert_eq!(lease.acquire(Some(seconds), None, X), Err(D::InvalidDuration(LeaseOn::File)));
    }
    assert_eq!(lease.acquire(None, None, X), Err(D::MissingDuration));
    assert_eq!(lease, FileLease::Available);
    lease = FileLease::Leased(A);
    assert_eq!(lease.acquire(Some(30), None, X), Err(D::InvalidDuration(LeaseOn::File)));
}

#[test]
fn acquire_while_leased_by_another_is_refused() {
    let mut lease = FileLease::Leased(A);
    assert_eq!(lease.acquire(Some(-1), Some(B), X), Err(D::LeaseAlreadyPresent));
    assert_eq!(lease.acquire(Some(-1), None, X), Err(D::LeaseAlreadyPresent));
    assert_eq!(lease.acquire(Some(-1), Some(A), X), Ok(A));
}

#[test]
fn a_write_without_id_on_a_leased_file_is_refused() {
    let denial = FileLease::Leased(A).check(WRITE, None).unwrap_err();
    assert_eq!(denial, D::LeaseIdMissing(LeaseOn::File));
}

#[test]
fn a_write_with_a_wrong_id_on_a_leased_file_is_refused() {
    let answer = FileLease::Leased(A).check(WRITE, Some(B));
    assert_eq!(answer, Err(D::LeaseIdMismatchWithFileOperation));
}

#[test]
fn a_write_with_the_right_id_on_a_leased_file_goes_through() {
    assert_eq!(FileLease::Leased(A).check(WRITE, Some(A)), Ok(()));
}

#[test]
fn an_id_on_an_unleased_file_is_refused() {
    for file_use in [READ, WRITE] {
        let answer = FileLease::Available.check(file_use, Some(A));
        assert_eq!(answer, Err(D::LeaseNotPresentWithFileOperation));
    }
}

#[test]
fn reads_of_a_leased_file_need_no_id_but_not_a_wrong_one() {
    let lease = FileLease::Leased(A);
    assert_eq!(lease.check(READ, None), Ok(()));
    assert_eq!(lease.check(READ, Some(A)), Ok(()));
    assert_eq!(lease.check(READ, Some(B)), Err(D::LeaseIdMismatchWithFileOperation));
}

#[test]
fn create_over_a_leased_file_keeps_the_lease() {
    let mut lease = FileLease::Leased(A);
    lease.check(WRITE, Some(A)).unwrap();
    lease.after_write();
    assert_eq!(lease, FileLease::Leased(A));
}

#[test]
fn create_with_an_id_for_a_new_name_is_refused() {
    let answer = FileLease::default().check(WRITE, Some(A));
    assert_eq!(answer, Err(D::LeaseNotPresentWithFileOperation));
}

#[test]
fn after_a_change_only_the_new_id_counts() {
    let mut lease = FileLease::Leased(A);
    assert_eq!(lease.change(B, C), Err(D::LeaseIdMismatchWithLeaseOperation(LeaseOn::File)));
    assert_eq!(lease.change(A, B), Ok(B));
    assert_eq!(lease.check(WRITE, Some(A)), Err(D::LeaseIdMismatchWithFileOperation));
    assert_eq!(lease.check(WRITE, Some(B)), Ok(()));
    assert_eq!(lease.change(A, B), Ok(B), "the same request once more");
}

#[test]
fn a_second_release_finds_no_lease() {
    let mut lease = FileLease::Leased(A);
    assert_eq!(lease.release(A), Ok(()));
    assert_eq!(lease.state(), LeaseState::Available);
    let denial = lease.release(A).unwrap_err();
    assert_eq!(denial, D::LeaseNotPresentWithLeaseOperation(LeaseOn::File));
}

#[test]
fn a_write_after_a_break_makes_the_file_available() {
    let mut lease = FileLease::Leased(A);
    assert_eq!(lease.break_now(), Ok(()));
    assert_eq!(lease.state(), LeaseState::Broken);
    assert_eq!(lease.check(WRITE, Some(A)), Err(D::LeaseLost(LeaseOn::File)));
    assert_eq!(lease.check(WRITE, None), Ok(()));
    lease.after_write();
    assert_eq!(lease, FileLease::Available);
}

#[test]
fn a_broken_lease_may_be_read_past_taken_and_broken_again_but_not_changed() {
    let mut lease = FileLease::Broken(A);
    assert_eq!(lease.check(READ, None), Ok(()));
    assert_eq!(lease, FileLease::Broken(A));
    assert_eq!(lease.change(A, B), Err(D::LeaseNotPresentWithLeaseOperation(LeaseOn::File)));
    assert_eq!(lease.break_now(), Ok(()));
    assert_eq!(lease, FileLease::Broken(A));
    assert_eq!(lease.acquire(Some(-1), Some(B), X), Ok(B));
}

#[test]
fn headers_show_a_duration_only_while_leased() {
    let shown = |lease: FileLease| {
        let duration = lease.duration().map(|duration| duration.to_string());
        (lease.status().to_string(), lease.state().to_string(), duration)
    };
    let text = |status: &str, state: &str, duration: Option<&str>| {
        (status.to_owned(), state.to_owned(), duration.map(str::to_owned))
    };
    assert_eq!(shown(FileLease::Leased(A)), text("locked", "leased", Some("infinite")));
    assert_eq!(shown(FileLease::Available), text("unlocked", "available", None));
    assert_eq!(shown(FileLease::Broken(A)), text("unlocked", "broken", None));
}
