//! Conflicts between clients of the Blob, Queue and Table services: what a refusal was about.
//!
//! Decides the names of conflicts in events and metrics. Which refusals are conflicts is decided
//! beside the refusals of each service.

use super::named::named;

named! {
    /// The act of another client that refuses a request.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Conflict,
    /// The name in events and metrics.
    name: &'static str {
        /// The object is not as the condition of the request demands.
        Condition = "condition",
        /// The object is leased, or the lease of the request is over.
        Lease = "lease",
        /// A copy to the blob is under way.
        CopyPending = "copy_pending",
        /// The pop receipt of the request is not that of the message.
        Receipt = "receipt",
    }
}
