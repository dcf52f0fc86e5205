//! Conflicts between clients of the Blob, Queue and Table services: what a refusal was about.
//!
//! Decides the names of conflicts in events and metrics. Which refusals are conflicts is decided
//! beside the refusals of each service.

/// The act of another client that refuses a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Conflict {
    /// The object is not as the condition of the request demands.
    Condition,
    /// The object is leased, or the lease of the request is over.
    Lease,
    /// A copy to the blob is under way.
    CopyPending,
    /// The pop receipt of the request is not that of the message.
    Receipt,
}

impl Conflict {
    pub const ALL: [Self; 4] = [Self::Condition, Self::Lease, Self::CopyPending, Self::Receipt];

    /// The name in events and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Condition => "condition",
            Self::Lease => "lease",
            Self::CopyPending => "copy_pending",
            Self::Receipt => "receipt",
        }
    }
}
