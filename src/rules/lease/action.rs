//! The actions of lease requests, which leases of files, shares, blobs and containers have in
//! common. What each does in which state is decided by the lease.

use super::{FileLease, LeaseDenial, LeaseId, LeaseKind, LeaseUse, TimedLease};
use crate::rules::Timestamp;

/// The action of a lease request. Durations and periods are as in the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseAction {
    Acquire {
        /// 15 to 60 seconds, or -1.
        duration: Option<i64>,
        /// The ID that the client wants.
        proposed: Option<LeaseId>,
        /// The ID where the client wants none.
        fresh: LeaseId,
    },
    /// Starts the duration anew.
    Renew(LeaseId),
    /// Gives the lease another ID.
    Change {
        /// The ID that it has.
        current: LeaseId,
        /// The ID that it gets.
        proposed: LeaseId,
    },
    /// Gives the lease up.
    Release(LeaseId),
    /// Ends the lease after a period of 0 to 60 seconds.
    Break(Option<i64>),
}

/// What the answer to a lease request shows: `x-ms-lease-id` and `x-ms-lease-time`.
pub type Leased = (Option<LeaseId>, Option<u64>);

impl LeaseAction {
    /// Carries the action out: the ID and the seconds of its answer.
    pub fn apply<K: LeaseKind>(
        self,
        lease: &mut TimedLease<K>,
        now: Timestamp,
    ) -> Result<Leased, LeaseDenial> {
        match self {
            Self::Acquire { duration, proposed, fresh } => {
                Ok((Some(lease.acquire(duration, proposed, fresh, now)?), None))
            }
            Self::Renew(id) => lease.renew(id, now).map(|()| (Some(id), None)),
            Self::Change { current, proposed } => {
                Ok((Some(lease.change(current, proposed, now)?), None))
            }
            Self::Release(id) => lease.release(id).map(|()| (None, None)),
            Self::Break(period) => Ok((None, Some(lease.break_within(period, now)?))),
        }
    }

    /// Carries the action out on the lease of a file, which is infinite: a break ends it at once,
    /// and no request renews it.
    pub fn apply_to_file(self, lease: &mut FileLease) -> Result<Leased, LeaseDenial> {
        match self {
            Self::Acquire { duration, proposed, fresh } => {
                Ok((Some(lease.acquire(duration, proposed, fresh)?), None))
            }
            Self::Renew(id) => lease.check(LeaseUse::Write, Some(id)).map(|()| (Some(id), None)),
            Self::Change { current, proposed } => {
                Ok((Some(lease.change(current, proposed)?), None))
            }
            Self::Release(id) => lease.release(id).map(|()| (None, None)),
            Self::Break(_) => lease.break_now().map(|()| (None, Some(0))),
        }
    }
}
