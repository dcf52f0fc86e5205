//! Leases: exclusive writing of a file or blob, protection of a share or container from deletion.
//!
//! Decides what each lease action does in each state and which uses a lease admits. Which REST
//! operation makes which use is in the tables of operations; statuses and code names are decided by
//! REST.
//!
//! [`FileLease`] is infinite and knows no time. [`TimedLease`] may run out and serves shares, blobs
//! and containers: `docs/semantics.md`, "Leases", has the tables of files and shares. Lease actions
//! move neither `ETag` nor Last-Modified (S39).

mod action;
mod class;
mod denial;
mod file;
mod id;
mod kind;
#[cfg(test)]
mod tests;
mod timed;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::named::named;

pub use action::{LeaseAction, Leased};
pub use class::{LeaseClass, ShareUse};
pub use denial::{LeaseDenial, LeaseOn};
pub use file::{FileLease, LeaseUse};
pub use id::{LeaseId, NotAGuid};
pub use kind::{LeaseKind, LeaseRules, OnBlob, OnContainer, OnShare};
pub use timed::{BlobLease, ContainerLease, ShareLease, TimedLease};

named! {
    /// The value of `x-ms-lease-state`. A file is never breaking or expired.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum LeaseState {
        /// No lease, or one that was released.
        Available = "available",
        Leased = "leased",
        /// In force until the break period is over. Nobody can acquire it before.
        Breaking = "breaking",
        /// Ended by a break; the ID is kept.
        Broken = "broken",
        /// Ended by time; the ID is kept and may renew.
        Expired = "expired",
    }
}

impl LeaseState {
    /// Locked while leased or breaking.
    pub const fn status(self) -> LeaseStatus {
        match self {
            Self::Leased | Self::Breaking => LeaseStatus::Locked,
            Self::Available | Self::Broken | Self::Expired => LeaseStatus::Unlocked,
        }
    }
}

named! {
    /// The value of `x-ms-lease-status`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum LeaseStatus {
        /// A lease is in force.
        Locked = "locked",
        Unlocked = "unlocked",
    }
}

/// The duration that a lease was asked for: 15 to 60 seconds, or infinite (S40).
///
/// Shown as the value of `x-ms-lease-duration` in an answer (`infinite` or `fixed`), stored as in
/// a request (seconds, -1 for ever).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct LeaseDuration(Option<u8>);

impl LeaseDuration {
    /// Until released or broken.
    pub const INFINITE: Self = Self(None);

    /// The duration of a request: 15 to 60, or -1. `None` for any other number.
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        match u8::try_from(seconds) {
            Ok(seconds @ 15..=60) => Some(Self(Some(seconds))),
            _ if seconds == -1 => Some(Self::INFINITE),
            _ => None,
        }
    }

    /// The span, `None` if infinite.
    pub fn span(self) -> Option<Duration> {
        self.0.map(|seconds| Duration::from_secs(seconds.into()))
    }
}

impl TryFrom<i64> for LeaseDuration {
    type Error = NotALeaseDuration;

    fn try_from(seconds: i64) -> Result<Self, NotALeaseDuration> {
        Self::from_seconds(seconds).ok_or(NotALeaseDuration)
    }
}

/// A stored number that is no duration of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a lease lasts 15 to 60 seconds, or -1 for infinite")]
pub struct NotALeaseDuration;

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
