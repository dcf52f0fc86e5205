//! The record of a container: metadata, access policies, public access, lease.
//!
//! Decides which fields are kept, and which access is in force. [`crate::rules::policy`] decides
//! which policies are legal.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::state::BlobMetadata;
use crate::rules::lease::ContainerLease;
use crate::rules::named::named;
use crate::rules::policy::StoredPolicy;
use crate::rules::{Etag, Timestamp, Writer};

named! {
    /// The part of a container that anonymous requests may read.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum PublicAccess {
        #[default]
        Private = "private",
        /// Blobs whose name they know.
        Blob = "blob",
        /// Blobs, and the container's properties and list.
        Container = "container",
    }
}

impl FromStr for PublicAccess {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "blob" => Ok(Self::Blob),
            "container" => Ok(Self::Container),
            _ => Err(()),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ContainerState {
    /// Its version for conditions. Blobs coming and going do not move it.
    pub etag: Etag,
    /// `Last-Modified`.
    pub modified: Timestamp,
    /// `x-ms-meta-*`.
    #[serde(default)]
    pub metadata: BlobMetadata,
    /// The part that anonymous requests may read.
    #[serde(default)]
    pub access: PublicAccess,
    #[serde(default)]
    pub policies: Vec<StoredPolicy>,
    /// Access and policies before the last change, and when that change takes effect: requests are
    /// authorised by the old ones until then (S22).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<OldAccess>,
    #[serde(default)]
    pub lease: ContainerLease,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_scope: Option<String>,
    #[serde(default)]
    pub deny_scope_override: bool,
    /// The last request that changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<Writer>,
    /// The last request that acquired, renewed, changed or broke its lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaser: Option<Writer>,
}

/// Access and policies that still authorise though they were replaced.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OldAccess {
    pub until: Timestamp,
    /// The part that anonymous requests may read.
    pub access: PublicAccess,
    pub policies: Vec<StoredPolicy>,
}

impl ContainerState {
    /// A container as Create makes it.
    pub fn new(etag: Etag, now: Timestamp) -> Self {
        Self {
            etag,
            modified: now,
            metadata: BlobMetadata::new(),
            access: PublicAccess::Private,
            policies: Vec::new(),
            before: None,
            lease: ContainerLease::default(),
            encryption_scope: None,
            deny_scope_override: false,
            writer: None,
            leaser: None,
        }
    }

    /// Moves `ETag` and Last-Modified; the latter never runs back.
    pub fn touch(&mut self, etag: Etag, now: Timestamp) {
        self.etag = etag;
        self.modified = self.modified.max(now);
    }

    /// Replaces access and policies. Requests are authorised by the new ones from `effective` on.
    /// A second change before that moment leaves the rights that are in force in force.
    pub fn set_access(
        &mut self,
        access: PublicAccess,
        policies: Vec<StoredPolicy>,
        now: Timestamp,
        effective: Timestamp,
    ) {
        let (old_access, old_policies) = self.in_force(now);
        let old = OldAccess { until: effective, access: old_access, policies: old_policies.into() };
        self.before = (effective > now).then_some(old);
        self.access = access;
        self.policies = policies;
    }

    /// The access and policies that authorise requests at a moment.
    pub fn in_force(&self, now: Timestamp) -> (PublicAccess, &[StoredPolicy]) {
        match &self.before {
            Some(before) if before.until > now => (before.access, &before.policies),
            _ => (self.access, &self.policies),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(id: &str) -> StoredPolicy {
        StoredPolicy { id: id.into(), ..Default::default() }
    }

    #[test]
    fn new_access_is_in_force_at_once_or_after_the_delay() {
        let mut container = ContainerState::new(Etag::default(), Timestamp(0));
        container.set_access(PublicAccess::Blob, vec![policy("a")], Timestamp(10), Timestamp(10));
        assert_eq!(container.in_force(Timestamp(10)).0, PublicAccess::Blob);
        let to = PublicAccess::Container;
        container.set_access(to, vec![policy("b")], Timestamp(20), Timestamp(50));
        assert_eq!(container.access, to, "the new value is shown at once");
        assert_eq!(container.in_force(Timestamp(49)), (PublicAccess::Blob, &[policy("a")][..]));
        assert_eq!(container.in_force(Timestamp(50)), (to, &[policy("b")][..]));
        container.set_access(PublicAccess::Private, Vec::new(), Timestamp(30), Timestamp(60));
        assert_eq!(container.in_force(Timestamp(59)).0, PublicAccess::Blob);
        assert_eq!(container.in_force(Timestamp(60)).0, PublicAccess::Private);
    }
}
