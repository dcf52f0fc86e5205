//! The timed lease: durations, break periods and their arithmetic, tried on the lease of a share.

use super::super::{LeaseDenial as D, LeaseOn, LeaseState, LeaseStatus, ShareLease, ShareUse};
use super::{A, B, X, at, at_ms, share_leased};

#[test]
fn a_share_lease_lasts_15_to_60_seconds_or_for_ever() {
    for seconds in [14, 61, 0, -2, 1, 255, 256 + 15, i64::MAX, i64::MIN] {
        let mut lease = ShareLease::default();
        let answer = lease.acquire(Some(seconds), None, X, at(0));
        assert_eq!(answer, Err(D::InvalidDuration(LeaseOn::Share)), "{seconds}");
        assert_eq!(lease, ShareLease::default());
    }
    for (seconds, left, shown) in
        [(15, Some(15), "fixed"), (60, Some(60), "fixed"), (-1, None, "infinite")]
    {
        let mut lease = ShareLease::default();
        assert_eq!(lease.acquire(Some(seconds), None, X, at(0)), Ok(X));
        assert_eq!(lease.seconds_left(at(0)), left);
        assert_eq!(lease.duration(at(0)).unwrap().to_string(), shown);
    }
    let answer = ShareLease::default().acquire(None, None, X, at(0));
    assert_eq!(answer, Err(D::MissingDuration));
}

#[test]
fn an_expired_lease_may_be_renewed_until_another_takes_it() {
    let mut lease = share_leased(15);
    assert_eq!(lease.state(at_ms(14_999)), LeaseState::Leased);
    assert_eq!(lease.seconds_left(at_ms(14_999)), Some(1));
    assert_eq!(lease.state(at_ms(15_000)), LeaseState::Expired);
    assert_eq!(lease.seconds_left(at_ms(15_000)), None);
    assert_eq!(lease.state(at_ms(15_001)), LeaseState::Expired);
    assert_eq!(lease.status(at(15)), LeaseStatus::Unlocked);
    assert_eq!(lease.duration(at(15)), None);

    assert_eq!(lease.renew(A, at(20)), Ok(()));
    assert_eq!(lease.state(at_ms(34_999)), LeaseState::Leased);
    assert_eq!(lease.state(at(35)), LeaseState::Expired);

    assert_eq!(lease.acquire(Some(15), Some(B), X, at(35)), Ok(B));
    assert_eq!(lease.renew(A, at(36)), Err(D::LeaseIdMismatchWithLeaseOperation(LeaseOn::Share)));
    assert_eq!(lease.seconds_left(at(36)), Some(14), "a refused renewal adds nothing");
}

#[test]
fn a_break_period_runs_before_the_lease_is_broken() {
    let mut lease = share_leased(60);
    assert_eq!(lease.break_within(Some(10), at(5)), Ok(10));
    assert_eq!(lease.state(at_ms(14_999)), LeaseState::Breaking);
    assert_eq!(lease.status(at(14)), LeaseStatus::Locked);
    assert_eq!(lease.seconds_left(at_ms(14_500)), Some(1));
    assert_eq!(lease.duration(at(14)), None);
    let denied = lease.acquire(Some(15), Some(B), X, at(14));
    assert_eq!(denied, Err(D::LeaseAlreadyPresent));
    let denied = lease.acquire(Some(15), Some(A), X, at(14));
    assert_eq!(denied, Err(D::LeaseIsBreakingAndCannotBeAcquired));
    assert_eq!(lease.state(at(15)), LeaseState::Broken);
    assert_eq!(lease.acquire(Some(15), Some(B), X, at(15)), Ok(B));
}

#[test]
fn a_break_period_longer_than_the_time_left_is_cut_to_it() {
    for (period, left) in [(59, 20), (21, 20), (20, 20), (19, 19), (1, 1), (0, 0)] {
        let mut lease = share_leased(30);
        assert_eq!(lease.break_within(Some(period), at(10)), Ok(left), "{period}");
    }
}

#[test]
fn a_second_break_may_only_shorten_the_first() {
    let mut lease = share_leased(60);
    assert_eq!(lease.break_within(Some(30), at(0)), Ok(30));
    assert_eq!(lease.break_within(Some(60), at(10)), Ok(20));
    assert_eq!(lease.break_within(None, at(12)), Ok(18));
    assert_eq!(lease.break_within(Some(5), at(12)), Ok(5));
    assert_eq!(lease.break_within(Some(0), at(13)), Ok(0));
    assert_eq!(lease.state(at(13)), LeaseState::Broken);
}

#[test]
fn without_a_break_period_a_finite_lease_runs_out_and_an_infinite_one_ends_at_once() {
    let mut finite = share_leased(60);
    assert_eq!(finite.break_within(None, at_ms(10_500)), Ok(50));
    assert_eq!(finite.state(at_ms(59_999)), LeaseState::Breaking);
    assert_eq!(finite.state(at(60)), LeaseState::Broken);
    let mut infinite = share_leased(-1);
    assert_eq!(infinite.break_within(None, at(10)), Ok(0));
    assert_eq!(infinite.state(at(10)), LeaseState::Broken);
    let mut infinite = share_leased(-1);
    assert_eq!(infinite.break_within(Some(60), at(10)), Ok(60));
    assert_eq!(infinite.state(at(69)), LeaseState::Breaking);
}

#[test]
fn a_break_period_is_0_to_60_seconds() {
    for period in [-1, 61, i64::MAX, i64::MIN] {
        let mut lease = share_leased(60);
        let answer = lease.break_within(Some(period), at(0));
        assert_eq!(answer, Err(D::InvalidBreakPeriod), "{period}");
        assert_eq!(lease, share_leased(60));
    }
    for period in [0, 60] {
        assert!(share_leased(60).break_within(Some(period), at(0)).is_ok());
    }
}

#[test]
fn a_leased_share_is_deleted_only_with_its_id() {
    let lease = share_leased(60);
    let delete = |presented| lease.check(ShareUse::Delete, presented, at(1));
    assert_eq!(delete(None), Err(D::LeaseIdMissing(LeaseOn::Share)));
    assert_eq!(delete(Some(B)), Err(D::LeaseIdMismatchWithShareOperation));
    assert_eq!(delete(Some(A)), Ok(()));
    assert_eq!(lease.check(ShareUse::Other, None, at(1)), Ok(()));
}

#[test]
fn acquiring_again_may_change_the_duration_and_renewing_may_not() {
    let mut lease = share_leased(60);
    assert_eq!(lease.acquire(Some(15), Some(A), X, at(1)), Ok(A));
    assert_eq!(lease.seconds_left(at(1)), Some(15));
    lease.renew(A, at(5)).unwrap();
    assert_eq!(lease.seconds_left(at(5)), Some(15));
    lease.change(A, B, at(8)).unwrap();
    assert_eq!(lease.seconds_left(at(8)), Some(12));
    assert_eq!(lease.acquire(Some(-1), Some(B), X, at(9)), Ok(B));
    assert_eq!(lease.seconds_left(at(9)), None);
    assert_eq!(lease.state(at(1_000_000)), LeaseState::Leased);
}
