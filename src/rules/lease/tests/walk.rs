//! Random actions on a share lease against a reference that lives second by second.
//!
//! The reference counts down instead of comparing moments, and knows the table of share leases as
//! a list of what succeeds.

use proptest::prelude::*;

use super::super::{LeaseId, LeaseState, ShareLease};
use super::{A, B, C, X, at};

#[derive(Clone, Copy, Debug)]
enum Action {
    Acquire(i64, Option<LeaseId>),
    Renew(LeaseId),
    Change(LeaseId, LeaseId),
    Release(LeaseId),
    Break(Option<i64>),
    Wait(u8),
}

/// `left` counts the seconds of a finite lease or break period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reference {
    state: LeaseState,
    id: Option<LeaseId>,
    duration: i64,
    left: Option<u64>,
}

impl Reference {
    fn second_passes(&mut self) {
        let Some(left) = self.left else { return };
        self.left = Some(left.saturating_sub(1));
        if left <= 1 {
            match self.state {
                LeaseState::Leased => self.state = LeaseState::Expired,
                LeaseState::Breaking => self.state = LeaseState::Broken,
                _ => {}
            }
        }
    }

    fn lease(&mut self, duration: i64) {
        self.state = LeaseState::Leased;
        self.duration = duration;
        self.left = u64::try_from(duration).ok();
    }

    /// True if it succeeds.
    fn act(&mut self, action: Action) -> bool {
        use LeaseState as S;
        let held = self.id;
        let locked = matches!(self.state, S::Leased | S::Breaking);
        match action {
            Action::Acquire(duration, proposed) => {
                let again = self.state == S::Leased && proposed.is_some() && proposed == held;
                let granted = duration_is_valid(duration) && (!locked || again);
                if granted {
                    self.lease(duration);
                    self.id = proposed.or(Some(X));
                }
                granted
            }
            Action::Renew(id) => {
                let granted = matches!(self.state, S::Leased | S::Expired) && held == Some(id);
                if granted {
                    self.lease(self.duration);
                }
                granted
            }
            Action::Change(from, to) => {
                let granted = self.state == S::Leased && (held == Some(from) || held == Some(to));
                if granted {
                    self.id = Some(to);
                }
                granted
            }
            Action::Release(id) => {
                let granted = held == Some(id);
                if granted {
                    *self = AVAILABLE;
                }
                granted
            }
            Action::Break(period) => {
                let valid = period.is_none_or(|period| (0..=60).contains(&period));
                let granted = valid && self.state != S::Available;
                if granted {
                    self.break_it(period.map(i64::unsigned_abs));
                }
                granted
            }
            Action::Wait(seconds) => {
                (0..seconds).for_each(|_| self.second_passes());
                true
            }
        }
    }

    fn break_it(&mut self, period: Option<u64>) {
        let locked = matches!(self.state, LeaseState::Leased | LeaseState::Breaking);
        let choices = [self.left, period];
        let shortest = choices.into_iter().flatten().min().unwrap_or(0);
        if locked && shortest > 0 {
            self.state = LeaseState::Breaking;
            self.left = Some(shortest);
        } else {
            self.state = LeaseState::Broken;
            self.left = None;
        }
    }
}

const AVAILABLE: Reference =
    Reference { state: LeaseState::Available, id: None, duration: 0, left: None };

fn duration_is_valid(seconds: i64) -> bool {
    seconds == -1 || (15..=60).contains(&seconds)
}

fn ids() -> impl Strategy<Value = LeaseId> {
    prop_oneof![Just(A), Just(B), Just(C), Just(X)]
}

fn actions() -> impl Strategy<Value = Action> {
    let durations = prop_oneof![Just(-1), Just(14), Just(61), 15..=60_i64, 15..=20_i64];
    prop_oneof![
        1 => (durations, proptest::option::of(ids())).prop_map(|(d, id)| Action::Acquire(d, id)),
        1 => ids().prop_map(Action::Renew),
        1 => (ids(), ids()).prop_map(|(from, to)| Action::Change(from, to)),
        1 => ids().prop_map(Action::Release),
        1 => proptest::option::of(-1..=61_i64).prop_map(Action::Break),
        3 => (0..=20_u8).prop_map(Action::Wait),
    ]
}

proptest! {
    #[test]
    fn a_share_lease_agrees_with_counting_seconds(
        actions in proptest::collection::vec(actions(), 1..80),
    ) {
        let mut lease = ShareLease::default();
        let mut reference = AVAILABLE;
        let mut seconds = 0;
        for action in actions {
            let now = at(seconds);
            let granted = match action {
                Action::Acquire(duration, id) => lease.acquire(Some(duration), id, X, now).is_ok(),
                Action::Renew(id) => lease.renew(id, now).is_ok(),
                Action::Change(from, to) => lease.change(from, to, now).is_ok(),
                Action::Release(id) => lease.release(id).is_ok(),
                Action::Break(period) => match lease.break_within(period, now) {
                    Ok(left) => {
                        prop_assert_eq!(lease.seconds_left(now).unwrap_or(0), left);
                        true
                    }
                    Err(_) => false,
                },
                Action::Wait(span) => {
                    seconds += i64::from(span);
                    true
                }
            };
            prop_assert_eq!(granted, reference.act(action), "{:?}", action);
            let now = at(seconds);
            prop_assert_eq!(lease.state(now), reference.state, "{:?}", action);
            prop_assert_eq!(lease.id(), reference.id);
            let left = reference.left.filter(|left| *left > 0);
            prop_assert_eq!(lease.seconds_left(now), left, "{:?}", action);
        }
    }
}
