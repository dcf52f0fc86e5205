//! Why a lease refuses: one variant per documented code (LOCKING 4.2), named like it.
//!
//! The four lease messages that were seen on the wire (LOCKING section 8) are literal; the others
//! follow their form. Statuses and the spelling of codes are left to REST.

use std::fmt;

/// What the lease is on; messages name it (LOCKING 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeaseOn {
    /// A file.
    File,
    /// A share.
    Share,
}

impl LeaseOn {
    pub(super) const fn mismatch(self) -> LeaseDenial {
        match self {
            Self::File => LeaseDenial::LeaseIdMismatchWithFileOperation,
            Self::Share => LeaseDenial::LeaseIdMismatchWithShareOperation,
        }
    }

    pub(super) const fn not_present(self) -> LeaseDenial {
        match self {
            Self::File => LeaseDenial::LeaseNotPresentWithFileOperation,
            Self::Share => LeaseDenial::LeaseNotPresentWithShareOperation,
        }
    }

    const fn durations(self) -> &'static str {
        match self {
            Self::File => "-1 (infinite)",
            Self::Share => "15 to 60 seconds, or -1 (infinite)",
        }
    }
}

impl fmt::Display for LeaseOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Share => "file share",
        })
    }
}

/// A refusal by a lease, or of a lease action.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum LeaseDenial {
    /// A guarded use without an ID while a lease is in force.
    #[error("There is currently a lease on the {0} and no lease ID was specified in the request.")]
    LeaseIdMissing(LeaseOn),
    /// A use of the file with another ID than the lease's.
    #[error("The lease ID specified did not match the lease ID for the file.")]
    LeaseIdMismatchWithFileOperation,
    /// A use of the share with another ID than the lease's.
    #[error("The lease ID specified did not match the lease ID for the file share.")]
    LeaseIdMismatchWithShareOperation,
    /// A use of the file with an ID though nobody holds a lease.
    #[error("A lease ID was specified, but there is no lease on the file.")]
    LeaseNotPresentWithFileOperation,
    /// A use of the share with an ID though nobody holds a lease.
    #[error("A lease ID was specified, but there is no lease on the file share.")]
    LeaseNotPresentWithShareOperation,
    /// A use with the ID of a lease that was broken or ran out.
    #[error("A lease ID was specified, but that lease on the {0} was broken or has expired.")]
    LeaseLost(LeaseOn),
    /// Acquire while another ID holds the lease.
    #[error("There is already a lease present.")]
    LeaseAlreadyPresent,
    /// Change, renew or release with another ID than the lease's.
    #[error("The lease ID specified did not match the lease ID of the lease on the {0}.")]
    LeaseIdMismatchWithLeaseOperation(LeaseOn),
    /// Change, renew, release or break without a lease.
    #[error("There is currently no lease on the {0}.")]
    LeaseNotPresentWithLeaseOperation(LeaseOn),
    /// Acquire by the holder while the break period runs.
    #[error("The lease is being broken and cannot be acquired until the break period is over.")]
    LeaseIsBreakingAndCannotBeAcquired,
    /// Change while the break period runs.
    #[error("The lease is being broken and its ID cannot be changed.")]
    LeaseIsBreakingAndCannotBeChanged,
    /// Renew after a break.
    #[error("The lease was broken and cannot be renewed.")]
    LeaseIsBrokenAndCannotBeRenewed,
    /// Acquire with a duration that leases of this kind do not have (bad request).
    #[error("The lease duration of a {} must be {}.", .0, .0.durations())]
    InvalidDuration(LeaseOn),
    /// Acquire without a duration (bad request).
    #[error("A lease cannot be acquired without a lease duration.")]
    MissingDuration,
    /// Break with a period outside 0 to 60 seconds (bad request).
    #[error("The break period of a lease must be 0 to 60 seconds.")]
    InvalidBreakPeriod,
}
