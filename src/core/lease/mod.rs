//! Leases: exclusive write and delete on a file, protection from deletion on a share.
//!
//! Decides what each lease action does in each state and which requests a lease lets through.
//! [`FileLease`] is infinite and knows no time; [`ShareLease`] may run out. Which REST operation
//! makes which use of a file is in [`super::operation`]; statuses and code names are REST's.
//!
//! Lease actions leave the file alone: neither `ETag` nor Last-Modified moves (LOCKING 4.1).
//!
//! Sources: LOCKING section 4, with C4 (a wrong ID is a failed condition) and C7 (only Delete
//! Share is guarded) decided as recommended there.

mod denial;
mod file;
mod id;
mod share;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use denial::{LeaseDenial, LeaseOn};
pub use file::{FileLease, LeaseUse};
pub use id::{LeaseId, NotAGuid};
pub use share::{ShareLease, ShareUse};

/// The value of `x-ms-lease-state`. A file is never breaking or expired.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeaseState {
    /// No lease, or one that was released.
    Available,
    /// Held.
    Leased,
    /// Held until the break period is over, and not to be had again by then.
    Breaking,
    /// Ended by a break; the ID is remembered.
    Broken,
    /// Ended by time; the ID is remembered and may renew.
    Expired,
}

impl LeaseState {
    /// Locked are leased and breaking (LOCKING 4.3).
    pub const fn status(self) -> LeaseStatus {
        match self {
            Self::Leased | Self::Breaking => LeaseStatus::Locked,
            Self::Available | Self::Broken | Self::Expired => LeaseStatus::Unlocked,
        }
    }
}

impl fmt::Display for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Available => "available",
            Self::Leased => "leased",
            Self::Breaking => "breaking",
            Self::Broken => "broken",
            Self::Expired => "expired",
        })
    }
}

/// The value of `x-ms-lease-status`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeaseStatus {
    /// A lease is in force.
    Locked,
    /// None is.
    Unlocked,
}

impl fmt::Display for LeaseStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Locked => "locked",
            Self::Unlocked => "unlocked",
        })
    }
}

/// How long a lease was asked for: 15 to 60 seconds, or for ever (LOCKING 4.3).
///
/// Shown as the value of `x-ms-lease-duration` in an answer (`infinite` or `fixed`), stored as in
/// a request (seconds, -1 for ever).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct LeaseDuration(Option<u8>);

impl LeaseDuration {
    /// Until released or broken.
    pub const INFINITE: Self = Self(None);

    /// The span, none if infinite.
    pub fn span(self) -> Option<Duration> {
        self.0.map(|seconds| Duration::from_secs(seconds.into()))
    }
}

impl TryFrom<i64> for LeaseDuration {
    type Error = LeaseDenial;

    fn try_from(seconds: i64) -> Result<Self, LeaseDenial> {
        match u8::try_from(seconds) {
            Ok(seconds @ 15..=60) => Ok(Self(Some(seconds))),
            _ if seconds == -1 => Ok(Self::INFINITE),
            _ => Err(LeaseDenial::InvalidDuration(LeaseOn::Share)),
        }
    }
}

impl From<LeaseDuration> for i64 {
    fn from(duration: LeaseDuration) -> Self {
        duration.0.map_or(-1, Self::from)
    }
}

impl fmt::Display for LeaseDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            None => "infinite",
            Some(_) => "fixed",
        })
    }
}

/// What of a lease matters to a request that is no lease action.
#[derive(Clone, Copy)]
enum Force {
    /// There is none.
    Absent,
    /// In force: leased or breaking.
    Present(LeaseId),
    /// Broken or expired, its ID remembered.
    Over(LeaseId),
}

impl Force {
    /// The first table of LOCKING 4.1 and of 4.3: they are one rule, once a wrong ID is a failed
    /// condition whatever the operation (C4).
    ///
    /// A presented ID is a condition that must hold, needed or not. `guarded` uses need one while
    /// the lease is in force. Two codes are documented for an ID whose lease is over (4.2): the
    /// last holder is told that it lost the lease, a stranger that there is none.
    fn admit(
        self,
        guarded: bool,
        presented: Option<LeaseId>,
        on: LeaseOn,
    ) -> Result<(), LeaseDenial> {
        match (self, presented) {
            (Self::Present(_), None) if guarded => Err(LeaseDenial::LeaseIdMissing(on)),
            (_, None) => Ok(()),
            (Self::Present(id), Some(presented)) if presented == id => Ok(()),
            (Self::Present(_), Some(_)) => Err(on.mismatch()),
            (Self::Over(id), Some(presented)) if presented == id => Err(LeaseDenial::LeaseLost(on)),
            (Self::Over(_) | Self::Absent, Some(_)) => Err(on.not_present()),
        }
    }
}
