//! The three things that a timed lease can be on, and the few answers in which their leases differ.
//!
//! The lease itself is [`super::TimedLease`]; it reads these rules and is otherwise the same for
//! all three.

use super::{LeaseDenial, LeaseOn};

/// The answers that depend on what is leased.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseRules {
    /// The kind of object that is leased. Messages and codes name it.
    pub on: LeaseOn,
    /// Answer to renew and release where no ID is known: for shares that there is no lease, for
    /// blobs and containers that the ID does not match.
    pub unknown_id_is_a_mismatch: bool,
    /// Answer to a change that proposes the ID of a breaking lease without knowing it: for shares
    /// that the lease is breaking, for blobs and containers that the ID does not match.
    pub proposer_learns_of_break: bool,
    /// Whether a write makes a lease that is over forget its ID. The ID of a blob's lease may renew
    /// after expiry only while the blob is as it was; a container's may whatever happened.
    pub write_forgets_id: bool,
}

impl LeaseRules {
    /// The refusal of renew and release where no ID is known.
    pub(super) const fn nothing_to_renew(self) -> LeaseDenial {
        if self.unknown_id_is_a_mismatch {
            LeaseDenial::LeaseIdMismatchWithLeaseOperation(self.on)
        } else {
            LeaseDenial::LeaseNotPresentWithLeaseOperation(self.on)
        }
    }
}

/// A kind of leased thing. A type parameter, so that a blob's lease cannot be taken for a
/// container's.
pub trait LeaseKind {
    /// The answers of this kind.
    const RULES: LeaseRules;
}

/// The lease of a file share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct OnShare;

impl LeaseKind for OnShare {
    const RULES: LeaseRules = LeaseRules {
        on: LeaseOn::Share,
        unknown_id_is_a_mismatch: false,
        proposer_learns_of_break: true,
        write_forgets_id: false,
    };
}

/// The lease of a blob.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct OnBlob;

impl LeaseKind for OnBlob {
    const RULES: LeaseRules = LeaseRules {
        on: LeaseOn::Blob,
        unknown_id_is_a_mismatch: true,
        proposer_learns_of_break: false,
        write_forgets_id: true,
    };
}

/// The lease of a blob container.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct OnContainer;

impl LeaseKind for OnContainer {
    const RULES: LeaseRules = LeaseRules {
        on: LeaseOn::Container,
        unknown_id_is_a_mismatch: true,
        proposer_learns_of_break: false,
        write_forgets_id: false,
    };
}
