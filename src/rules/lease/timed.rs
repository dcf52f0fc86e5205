//! The timed lease of shares, blobs and containers: 15 to 60 seconds or infinite, renewable,
//! broken at once or after a period.
//!
//! Decides what each lease action does in each state. What differs between the three is in
//! [`super::kind`]; which operations need the lease's ID, in [`super::class`].
//!
//! No timer runs: the record says when a lease ends, and each question names its moment. A lease
//! is over at the very moment its time ends.

use std::marker::PhantomData;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::class::Force;
use super::{
    LeaseClass, LeaseDenial, LeaseDuration, LeaseId, LeaseKind, LeaseRules, LeaseState,
    LeaseStatus, OnBlob, OnContainer, OnShare,
};
use crate::rules::Timestamp;

/// The lease of a file share. It guards Delete Share alone; files in the share have their own.
pub type ShareLease = TimedLease<OnShare>;
/// The lease of a blob. It guards every write of the blob (S43).
pub type BlobLease = TimedLease<OnBlob>;
/// The lease of a blob container. It guards Delete Container alone (S66).
pub type ContainerLease = TimedLease<OnContainer>;

/// A lease that may run out. A refused action leaves it as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent, bound = "")]
pub struct TimedLease<K> {
    record: LeaseRecord,
    kind: PhantomData<K>,
}

/// The stored form of a lease. That the lease has expired, or that a break has completed, follows
/// from the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LeaseRecord {
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

impl<K: LeaseKind> TimedLease<K> {
    const RULES: LeaseRules = K::RULES;
    const MISMATCH: LeaseDenial = LeaseDenial::LeaseIdMismatchWithLeaseOperation(K::RULES.on);
    const NOT_PRESENT: LeaseDenial = LeaseDenial::LeaseNotPresentWithLeaseOperation(K::RULES.on);

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
        let seconds = duration.ok_or(LeaseDenial::MissingDuration)?;
        let duration = LeaseDuration::from_seconds(seconds)
            .ok_or(LeaseDenial::InvalidDuration(Self::RULES.on))?;
        // Read only while a lease is in force, when there is an ID to compare with.
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
                self.record = LeaseRecord::Leased { id, duration, since: now };
                Ok(id)
            }
        }
    }

    /// Starts the duration anew. The holder may do so after expiry too, until another client takes
    /// the lease or, for a blob, until a write forgets it.
    pub fn renew(&mut self, id: LeaseId, now: Timestamp) -> Result<(), LeaseDenial> {
        match &mut self.record {
            LeaseRecord::Available => Err(Self::RULES.nothing_to_renew()),
            LeaseRecord::Leased { id: held, .. }
            | LeaseRecord::Breaking { id: held, .. }
            | LeaseRecord::Broken { id: held }
                if *held != id =>
            {
                Err(Self::MISMATCH)
            }
            LeaseRecord::Leased { since, .. } => {
                *since = now;
                Ok(())
            }
            LeaseRecord::Breaking { .. } | LeaseRecord::Broken { .. } => {
                Err(LeaseDenial::LeaseIsBrokenAndCannotBeRenewed)
            }
        }
    }

    /// Gives the lease another ID; its time runs on. A caller that proposes the ID which the lease
    /// already has need not know it: the repetition of a change that succeeded must succeed.
    pub fn change(
        &mut self,
        current: LeaseId,
        proposed: LeaseId,
        now: Timestamp,
    ) -> Result<LeaseId, LeaseDenial> {
        let known = |id: LeaseId| id == current || id == proposed;
        let state = self.state(now);
        match &mut self.record {
            LeaseRecord::Leased { id, .. } if state == LeaseState::Leased => {
                if !known(*id) {
                    return Err(Self::MISMATCH);
                }
                *id = proposed;
                Ok(proposed)
            }
            LeaseRecord::Breaking { id, .. } if state == LeaseState::Breaking => {
                let told = *id == current || Self::RULES.proposer_learns_of_break && known(*id);
                Err(if told {
                    LeaseDenial::LeaseIsBreakingAndCannotBeChanged
                } else {
                    Self::MISMATCH
                })
            }
            _ => Err(Self::NOT_PRESENT),
        }
    }

    /// Gives the lease up, or forgets one that is over.
    pub fn release(&mut self, id: LeaseId) -> Result<(), LeaseDenial> {
        match self.id() {
            None => Err(Self::RULES.nothing_to_renew()),
            Some(held) if held != id => Err(Self::MISMATCH),
            Some(_) => {
                self.record = LeaseRecord::Available;
                Ok(())
            }
        }
    }

    /// Ends the lease when `period` (0 to 60 seconds) is over, or with its time if that is
    /// sooner. No ID is needed. Without a period a finite lease runs out its time and an infinite
    /// one ends at once.
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
        let id = self.id().ok_or(Self::NOT_PRESENT)?;
        let wanted = period.map(|period| now.after(period));
        let until = match self.state(now) {
            LeaseState::Leased | LeaseState::Breaking => match (self.until(), wanted) {
                (Some(end), Some(wanted)) => end.min(wanted),
                (Some(end), None) => end,
                (None, wanted) => wanted.unwrap_or(now),
            },
            LeaseState::Available | LeaseState::Broken | LeaseState::Expired => now,
        };
        self.record = if until > now {
            LeaseRecord::Breaking { id, until }
        } else {
            LeaseRecord::Broken { id }
        };
        Ok(self.seconds_left(now).unwrap_or(0))
    }

    /// Admits a use of the leased thing, or refuses it. A [`LeaseClass::Write`] or
    /// [`LeaseClass::CopyTarget`] that was admitted and carried out must be followed by
    /// [`Self::after_write`].
    pub fn check(
        &self,
        class: impl Into<LeaseClass>,
        presented: Option<LeaseId>,
        now: Timestamp,
    ) -> Result<(), LeaseDenial> {
        self.force(now).admit(class.into(), presented, Self::RULES.on)
    }

    /// Whether `presented` is the ID of a lease in force.
    pub fn is_held_by(&self, presented: Option<LeaseId>, now: Timestamp) -> bool {
        matches!(self.force(now), Force::Present { id, .. } if presented == Some(id))
    }

    /// Records that a write was carried out. A lease that is over forgets its ID where the kind
    /// says so; a lease in force stays, also when the object is created over.
    pub fn after_write(&mut self, now: Timestamp) {
        if Self::RULES.write_forgets_id && self.status(now) == LeaseStatus::Unlocked {
            self.record = LeaseRecord::Available;
        }
    }

    fn force(&self, now: Timestamp) -> Force {
        match (self.id(), self.status(now)) {
            (None, _) => Force::Absent,
            (Some(id), LeaseStatus::Locked) => {
                let infinite = self.duration(now) == Some(LeaseDuration::INFINITE);
                Force::Present { id, infinite }
            }
            (Some(id), LeaseStatus::Unlocked) => Force::Over(id),
        }
    }

    /// The ID of the lease, also of one that is over.
    pub const fn id(&self) -> Option<LeaseId> {
        match self.record {
            LeaseRecord::Available => None,
            LeaseRecord::Leased { id, .. }
            | LeaseRecord::Breaking { id, .. }
            | LeaseRecord::Broken { id } => Some(id),
        }
    }

    pub fn state(&self, now: Timestamp) -> LeaseState {
        let over = self.until().is_some_and(|until| until <= now);
        match self.record {
            LeaseRecord::Available => LeaseState::Available,
            LeaseRecord::Leased { .. } if over => LeaseState::Expired,
            LeaseRecord::Leased { .. } => LeaseState::Leased,
            LeaseRecord::Breaking { .. } if !over => LeaseState::Breaking,
            LeaseRecord::Breaking { .. } | LeaseRecord::Broken { .. } => LeaseState::Broken,
        }
    }

    pub fn status(&self, now: Timestamp) -> LeaseStatus {
        self.state(now).status()
    }

    /// For `x-ms-lease-duration`: shown while leased only.
    pub fn duration(&self, now: Timestamp) -> Option<LeaseDuration> {
        match self.record {
            LeaseRecord::Leased { duration, .. } if self.state(now) == LeaseState::Leased => {
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
    pub fn until(&self) -> Option<Timestamp> {
        match self.record {
            LeaseRecord::Leased { duration, since, .. } => {
                duration.span().map(|span| since.after(span))
            }
            LeaseRecord::Breaking { until, .. } => Some(until),
            LeaseRecord::Available | LeaseRecord::Broken { .. } => None,
        }
    }
}
