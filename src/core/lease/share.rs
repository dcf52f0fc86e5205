//! The lease of a share: may run out, may be renewed, may take its time to break.
//!
//! Decides the two tables of LOCKING 4.3. A share lease guards Delete Share alone (C7); files
//! inside know nothing of it.
//!
//! Time is not watched: what is stored says when a lease ends, and each question names its
//! moment. A lease is over at the very moment its time ends.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Force, LeaseDenial, LeaseDuration, LeaseId, LeaseOn, LeaseState, LeaseStatus};
use crate::core::Timestamp;

const MISMATCH: LeaseDenial = LeaseDenial::LeaseIdMismatchWithLeaseOperation(LeaseOn::Share);
const NOT_PRESENT: LeaseDenial = LeaseDenial::LeaseNotPresentWithLeaseOperation(LeaseOn::Share);

/// The lease of a share. A refused action leaves it as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShareLease(Record);

/// What is kept. That a lease has expired, or a break has completed, follows from the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    #[default]
    Available,
    Leased {
        id: LeaseId,
        duration: LeaseDuration,
        since: Timestamp,
    },
    Breaking {
        id: LeaseId,
        until: Timestamp,
    },
    Broken {
        id: LeaseId,
    },
}

/// What a request does to a share, as far as its lease cares.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShareUse {
    /// Delete Share: needs the ID while a lease is in force.
    Delete,
    /// Any other share operation: needs no ID; one that is sent must match.
    Other,
}

impl ShareLease {
    /// Takes the lease under the proposed ID, or under `fresh` where none is proposed. The holder
    /// may take it again, with another duration.
    ///
    /// `duration` is as in the request: 15 to 60 seconds, or -1.
    pub fn acquire(
        &mut self,
        duration: Option<i64>,
        proposed: Option<LeaseId>,
        fresh: LeaseId,
        now: Timestamp,
    ) -> Result<LeaseId, LeaseDenial> {
        let duration = duration.ok_or(LeaseDenial::MissingDuration)?.try_into()?;
        // Asked only while a lease is in force, when there is an ID to compare with.
        let by_holder = proposed == self.id();
        match self.state(now) {
            LeaseState::Breaking if by_holder => {
                Err(LeaseDenial::LeaseIsBreakingAndCannotBeAcquired)
            }
            LeaseState::Breaking => Err(LeaseDenial::LeaseAlreadyPresent),
            LeaseState::Leased if !by_holder => Err(LeaseDenial::LeaseAlreadyPresent),
            LeaseState::Available
            | LeaseState::Leased
            | LeaseState::Broken
            | LeaseState::Expired => {
                let id = proposed.unwrap_or(fresh);
                self.0 = Record::Leased { id, duration, since: now };
                Ok(id)
            }
        }
    }

    /// Starts the duration anew. The holder may do so after expiry too, until somebody else takes
    /// the lease.
    pub fn renew(&mut self, id: LeaseId, now: Timestamp) -> Result<(), LeaseDenial> {
        match &mut self.0 {
            Record::Available => Err(NOT_PRESENT),
            Record::Leased { id: held, .. }
            | Record::Breaking { id: held, .. }
            | Record::Broken { id: held }
                if *held != id =>
            {
                Err(MISMATCH)
            }
            Record::Leased { since, .. } => {
                *since = now;
                Ok(())
            }
            Record::Breaking { .. } | Record::Broken { .. } => {
                Err(LeaseDenial::LeaseIsBrokenAndCannotBeRenewed)
            }
        }
    }

    /// Gives the lease another ID; its time runs on. Whoever proposes the ID it already has need
    /// not know it: a repeated request must not fail because the first one got through.
    pub fn change(
        &mut self,
        current: LeaseId,
        proposed: LeaseId,
        now: Timestamp,
    ) -> Result<LeaseId, LeaseDenial> {
        let known = |id: LeaseId| id == current || id == proposed;
        let state = self.state(now);
        match &mut self.0 {
            Record::Leased { id, .. } if state == LeaseState::Leased => {
                if !known(*id) {
                    return Err(MISMATCH);
                }
                *id = proposed;
                Ok(proposed)
            }
            Record::Breaking { id, .. } if state == LeaseState::Breaking => Err(if known(*id) {
                LeaseDenial::LeaseIsBreakingAndCannotBeChanged
            } else {
                MISMATCH
            }),
            _ => Err(NOT_PRESENT),
        }
    }

    /// Gives the lease up, or forgets one that is over.
    pub fn release(&mut self, id: LeaseId) -> Result<(), LeaseDenial> {
        match self.id() {
            None => Err(NOT_PRESENT),
            Some(held) if held != id => Err(MISMATCH),
            Some(_) => {
                self.0 = Record::Available;
                Ok(())
            }
        }
    }

    /// Ends the lease when `period` (0 to 60 seconds) is over, or with its time if that is
    /// sooner; anyone may. Without a period a finite lease runs out its time and an infinite one
    /// ends at once.
    ///
    /// Returns the seconds left, for `x-ms-lease-time`.
    pub fn break_within(
        &mut self,
        period: Option<i64>,
        now: Timestamp,
    ) -> Result<u64, LeaseDenial> {
        let period = match period.map(u64::try_from) {
            None => None,
            Some(Ok(seconds @ 0..=60)) => Some(Duration::from_secs(seconds)),
            Some(_) => return Err(LeaseDenial::InvalidBreakPeriod),
        };
        let id = self.id().ok_or(NOT_PRESENT)?;
        let wanted = period.map(|period| now.after(period));
        let until = match self.state(now) {
            LeaseState::Leased | LeaseState::Breaking => match (self.until(), wanted) {
                (Some(end), Some(wanted)) => end.min(wanted),
                (Some(end), None) => end,
                (None, wanted) => wanted.unwrap_or(now),
            },
            LeaseState::Available | LeaseState::Broken | LeaseState::Expired => now,
        };
        self.0 = if until > now { Record::Breaking { id, until } } else { Record::Broken { id } };
        Ok(self.seconds_left(now).unwrap_or(0))
    }

    /// Lets a use of the share through, or says why not.
    pub fn check(
        &self,
        share_use: ShareUse,
        presented: Option<LeaseId>,
        now: Timestamp,
    ) -> Result<(), LeaseDenial> {
        let force = match (self.id(), self.status(now)) {
            (None, _) => Force::Absent,
            (Some(id), LeaseStatus::Locked) => Force::Present(id),
            (Some(id), LeaseStatus::Unlocked) => Force::Over(id),
        };
        force.admit(share_use == ShareUse::Delete, presented, LeaseOn::Share)
    }

    /// The ID of the lease, also of one that is over.
    pub const fn id(&self) -> Option<LeaseId> {
        match self.0 {
            Record::Available => None,
            Record::Leased { id, .. } | Record::Breaking { id, .. } | Record::Broken { id } => {
                Some(id)
            }
        }
    }

    /// For `x-ms-lease-state`.
    pub fn state(&self, now: Timestamp) -> LeaseState {
        let over = self.until().is_some_and(|until| until <= now);
        match self.0 {
            Record::Available => LeaseState::Available,
            Record::Leased { .. } if over => LeaseState::Expired,
            Record::Leased { .. } => LeaseState::Leased,
            Record::Breaking { .. } if !over => LeaseState::Breaking,
            Record::Breaking { .. } | Record::Broken { .. } => LeaseState::Broken,
        }
    }

    /// For `x-ms-lease-status`.
    pub fn status(&self, now: Timestamp) -> LeaseStatus {
        self.state(now).status()
    }

    /// For `x-ms-lease-duration`: shown while leased only.
    pub fn duration(&self, now: Timestamp) -> Option<LeaseDuration> {
        match self.0 {
            Record::Leased { duration, .. } if self.state(now) == LeaseState::Leased => {
                Some(duration)
            }
            _ => None,
        }
    }

    /// Seconds until the lease ends by itself, a begun one counting as whole, so never 0. None
    /// for a lease without end, and where none is in force.
    pub fn seconds_left(&self, now: Timestamp) -> Option<u64> {
        let left = self.until().filter(|until| *until > now)?.since(now);
        Some(left.as_secs() + u64::from(left.subsec_nanos() > 0))
    }

    /// When the lease ends by itself.
    fn until(&self) -> Option<Timestamp> {
        match self.0 {
            Record::Leased { duration, since, .. } => duration.span().map(|span| since.after(span)),
            Record::Breaking { until, .. } => Some(until),
            Record::Available | Record::Broken { .. } => None,
        }
    }
}
