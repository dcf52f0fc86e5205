//! The lease of a file: infinite, not renewable, broken at once.
//!
//! Decides the two tables of files in `docs/semantics.md`, "Leases". What a lease means to opens of
//! the mount is decided where opens are.

use serde::{Deserialize, Serialize};

use super::class::Force;
use super::{LeaseClass, LeaseDenial, LeaseDuration, LeaseId, LeaseOn, LeaseState, LeaseStatus};

const MISMATCH: LeaseDenial = LeaseDenial::LeaseIdMismatchWithLeaseOperation(LeaseOn::File);
const NOT_PRESENT: LeaseDenial = LeaseDenial::LeaseNotPresentWithLeaseOperation(LeaseOn::File);

/// The lease of a file. A refused action leaves it as it was.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileLease {
    /// No lease. Also the state of a file that does not exist, so that a Create File which sends an
    /// ID for a new name is refused.
    #[default]
    Available,
    /// In force; a request that sends the ID holds the lease.
    Leased(LeaseId),
    /// Ended by a break; the ID is kept until the next acquire, release or write.
    Broken(LeaseId),
}

/// How a request uses a file, as far as its lease is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeaseUse {
    /// Needs no ID; one that is sent must match.
    Read,
    /// Needs the ID while the file is leased.
    Write,
}

impl FileLease {
    /// Takes the lease under the proposed ID, or under `fresh` where none is proposed.
    ///
    /// `duration` is as in the request: it must be there and be -1.
    pub fn acquire(
        &mut self,
        duration: Option<i64>,
        proposed: Option<LeaseId>,
        fresh: LeaseId,
    ) -> Result<LeaseId, LeaseDenial> {
        match duration {
            Some(-1) => {}
            Some(_) => return Err(LeaseDenial::InvalidDuration(LeaseOn::File)),
            None => return Err(LeaseDenial::MissingDuration),
        }
        match *self {
            Self::Leased(id) if proposed != Some(id) => Err(LeaseDenial::LeaseAlreadyPresent),
            Self::Available | Self::Leased(_) | Self::Broken(_) => {
                let id = proposed.unwrap_or(fresh);
                *self = Self::Leased(id);
                Ok(id)
            }
        }
    }

    /// Gives the lease another ID. A caller that proposes the ID which the lease already has need
    /// not know it: the repetition of a change that succeeded must succeed.
    pub fn change(&mut self, current: LeaseId, proposed: LeaseId) -> Result<LeaseId, LeaseDenial> {
        match *self {
            Self::Leased(id) if id == current || id == proposed => {
                *self = Self::Leased(proposed);
                Ok(proposed)
            }
            Self::Leased(_) => Err(MISMATCH),
            Self::Available | Self::Broken(_) => Err(NOT_PRESENT),
        }
    }

    /// Gives the lease up, or forgets a broken one.
    pub fn release(&mut self, id: LeaseId) -> Result<(), LeaseDenial> {
        match *self {
            Self::Leased(held) | Self::Broken(held) if held == id => {
                *self = Self::Available;
                Ok(())
            }
            Self::Leased(_) | Self::Broken(_) => Err(MISMATCH),
            Self::Available => Err(NOT_PRESENT),
        }
    }

    /// Ends the lease at once. No ID is needed, and the time left is always 0.
    pub fn break_now(&mut self) -> Result<(), LeaseDenial> {
        match *self {
            Self::Leased(id) | Self::Broken(id) => {
                *self = Self::Broken(id);
                Ok(())
            }
            Self::Available => Err(NOT_PRESENT),
        }
    }

    /// Admits a use of the file, or refuses it. A write that was admitted and carried out must be
    /// followed by [`Self::after_write`].
    pub fn check(self, file_use: LeaseUse, presented: Option<LeaseId>) -> Result<(), LeaseDenial> {
        let force = match self {
            Self::Available => Force::Absent,
            Self::Leased(id) => Force::Present { id, infinite: true },
            Self::Broken(id) => Force::Over(id),
        };
        let class = match file_use {
            LeaseUse::Read => LeaseClass::Read,
            LeaseUse::Write => LeaseClass::Write,
        };
        force.admit(class, presented, LeaseOn::File)
    }

    /// Records that a write was carried out: a broken lease is forgotten, a lease in force stays,
    /// also when Create File replaces the file.
    pub fn after_write(&mut self) {
        if matches!(self, Self::Broken(_)) {
            *self = Self::Available;
        }
    }

    pub const fn state(self) -> LeaseState {
        match self {
            Self::Available => LeaseState::Available,
            Self::Leased(_) => LeaseState::Leased,
            Self::Broken(_) => LeaseState::Broken,
        }
    }

    pub const fn status(self) -> LeaseStatus {
        self.state().status()
    }

    /// For `x-ms-lease-duration`: shown while leased only.
    pub fn duration(self) -> Option<LeaseDuration> {
        matches!(self, Self::Leased(_)).then_some(LeaseDuration::INFINITE)
    }
}
