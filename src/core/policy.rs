//! Stored access policies: terms of a shared access signature that are kept with a container.
//!
//! How many a container may have and where they are kept is each service's own decision.

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// A stored access policy, which a SAS may name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StoredPolicy {
    /// The ID that a SAS names it by.
    pub id: String,
    /// The start of its validity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// The end of its validity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Timestamp>,
    /// The letters it permits, such as `rwdl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
}
