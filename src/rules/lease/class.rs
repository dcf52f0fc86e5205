//! Use of a leased object by a request that is no lease action: the class of each use, and its
//! answer.
//!
//! The tables of operations decide the class of an operation; [`super::TimedLease`] and
//! [`super::FileLease`] decide whether a lease is in force.

use super::{LeaseDenial, LeaseId, LeaseOn};

/// How an operation meets a timed lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeaseClass {
    /// The operation takes no lease ID; one that is sent is ignored.
    Ignored,
    /// A lease action: it answers by the state of the lease, not by this table.
    Action,
    /// Needs no ID; one that is sent must be that of the lease in force.
    Read,
    /// Needs the ID while a lease is in force.
    Write,
    /// Deletes a share or a container. Needs the ID while a lease is in force.
    Delete,
    /// The destination of an asynchronous copy: as [`Self::Write`], and the lease must be infinite,
    /// so that it cannot run out before the copy ends (S63).
    CopyTarget,
    /// Abort Copy: needs the ID while an infinite lease is in force (S64).
    AbortCopy,
}

impl LeaseClass {
    /// Whether a lease in force demands an ID from this class of use.
    const fn demands_id(self, infinite: bool) -> bool {
        match self {
            Self::Write | Self::Delete | Self::CopyTarget => true,
            Self::AbortCopy => infinite,
            Self::Ignored | Self::Action | Self::Read => false,
        }
    }
}

/// How an operation on a share meets the share's lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShareUse {
    /// Delete Share: needs the ID while a lease is in force.
    Delete,
    /// Sets properties, quota, metadata or access policies: needs the ID while a lease is in force.
    Set,
    /// Any other share operation: needs no ID; one that is sent must match.
    Other,
}

impl From<ShareUse> for LeaseClass {
    fn from(share_use: ShareUse) -> Self {
        match share_use {
            ShareUse::Delete => Self::Delete,
            ShareUse::Set => Self::Write,
            ShareUse::Other => Self::Read,
        }
    }
}

/// The part of a lease that matters to a request that is no lease action.
#[derive(Clone, Copy)]
pub(super) enum Force {
    /// There is no lease, and no ID is known.
    Absent,
    /// A lease is in force: leased or breaking.
    Present { id: LeaseId, infinite: bool },
    /// The lease is broken or expired; its ID is known.
    Over(LeaseId),
}

impl Force {
    /// Admits a use, or refuses it.
    ///
    /// An ID that is sent is a condition that must hold, whether the class needs one or not. Once
    /// the lease is over, its last holder is told that the lease was lost, a stranger that there
    /// is none.
    pub(super) fn admit(
        self,
        class: LeaseClass,
        presented: Option<LeaseId>,
        on: LeaseOn,
    ) -> Result<(), LeaseDenial> {
        if matches!(class, LeaseClass::Ignored | LeaseClass::Action) {
            return Ok(());
        }
        match (self, presented) {
            (Self::Present { infinite, .. }, None) if class.demands_id(infinite) => {
                Err(LeaseDenial::LeaseIdMissing(on))
            }
            (_, None) => Ok(()),
            (Self::Present { id, infinite }, Some(presented)) if presented == id => {
                if class == LeaseClass::CopyTarget && !infinite {
                    return Err(LeaseDenial::InfiniteLeaseDurationRequired);
                }
                Ok(())
            }
            (Self::Present { .. }, Some(_)) => Err(LeaseDenial::LeaseIdMismatchWithOperation(on)),
            (Self::Over(id), Some(presented)) if presented == id => Err(LeaseDenial::LeaseLost(on)),
            (Self::Over(_) | Self::Absent, Some(_)) => {
                Err(LeaseDenial::LeaseNotPresentWithOperation(on))
            }
        }
    }
}
