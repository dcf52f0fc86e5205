//! The refusals of leases: one variant per documented code, named like the code. Codes that name
//! the object are one variant with the object.
//!
//! The messages are the service's where the service's wording is known. REST decides statuses and
//! the spelling of codes.

use std::fmt;

/// The kind of object that has the lease. Messages name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeaseOn {
    File,
    Share,
    Blob,
    Container,
}

impl LeaseOn {
    /// The sentence of a use with an ID though no lease is in force.
    const fn no_lease(self) -> &'static str {
        match self {
            Self::File => "A lease ID was specified, but there is no lease on the file.",
            Self::Share => "A lease ID was specified, but there is no lease on the file share.",
            Self::Blob => "There is currently no lease on the blob.",
            Self::Container => "There is currently no lease on the container.",
        }
    }

    const fn durations(self) -> &'static str {
        match self {
            Self::File => "-1 (infinite)",
            Self::Share | Self::Blob | Self::Container => "15 to 60 seconds, or -1 (infinite)",
        }
    }
}

impl fmt::Display for LeaseOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Share => "file share",
            Self::Blob => "blob",
            Self::Container => "container",
        })
    }
}

/// A refusal by a lease, or of a lease action.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum LeaseDenial {
    /// A guarded use without an ID while a lease is in force.
    #[error("There is currently a lease on the {0} and no lease ID was specified in the request.")]
    LeaseIdMissing(LeaseOn),
    /// A use with another ID than the lease's.
    #[error("The lease ID specified did not match the lease ID for the {0}.")]
    LeaseIdMismatchWithOperation(LeaseOn),
    /// A use with an ID though no lease is in force.
    #[error("{}", .0.no_lease())]
    LeaseNotPresentWithOperation(LeaseOn),
    /// A use with the ID of a lease that was broken or ran out; the message is the same for both.
    #[error("A lease ID was specified, but the lease for the {0} has expired.")]
    LeaseLost(LeaseOn),
    /// Acquire while another ID holds the lease.
    #[error("There is already a lease present.")]
    LeaseAlreadyPresent,
    /// Change, renew or release with another ID than the lease's.
    #[error("The lease ID specified did not match the lease ID for the {0}.")]
    LeaseIdMismatchWithLeaseOperation(LeaseOn),
    /// Change, renew, release or break without a lease.
    #[error("There is currently no lease on the {0}.")]
    LeaseNotPresentWithLeaseOperation(LeaseOn),
    /// Acquire by the holder while the break period runs.
    #[error(
        "The lease ID matched, but the lease is currently in breaking state and cannot be acquired \
         until it is broken."
    )]
    LeaseIsBreakingAndCannotBeAcquired,
    /// Change while the break period runs.
    #[error(
        "The lease ID matched, but the lease is currently in breaking state and cannot be changed."
    )]
    LeaseIsBreakingAndCannotBeChanged,
    /// Renew after a break.
    #[error(
        "The lease ID matched, but the lease has been broken explicitly and cannot be renewed."
    )]
    LeaseIsBrokenAndCannotBeRenewed,
    /// An asynchronous copy to a blob whose lease may run out before the copy ends.
    #[error("The lease ID matched, but the specified lease must be an infinite-duration lease.")]
    InfiniteLeaseDurationRequired,
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
