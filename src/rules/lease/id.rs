//! The identity of a lease: a GUID, compared by value.
//!
//! Decides which spellings are GUIDs. Randomness comes from the caller.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::fmt::{Hyphenated, Simple};
use uuid::{Builder, Uuid};

/// A lease ID. Clients may spell it as any GUID that .NET reads; it is shown in lower case with
/// hyphens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseId(Uuid);

/// A text that is no GUID.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a lease ID must be a GUID")]
pub struct NotAGuid;

impl LeaseId {
    /// An ID of 16 random bytes: those bits that mark a random GUID are set (RFC 9562, version 4).
    pub const fn from_random_bytes(bytes: [u8; 16]) -> Self {
        Self(Builder::from_random_bytes(bytes).into_uuid())
    }
}

impl From<Uuid> for LeaseId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl FromStr for LeaseId {
    type Err = NotAGuid;

    /// Hyphenated, with or without braces or parentheses around it, or 32 bare digits; any case.
    fn from_str(text: &str) -> Result<Self, NotAGuid> {
        let enclosed = |open, close| text.strip_prefix(open)?.strip_suffix(close);
        let inner = enclosed('{', '}').or_else(|| enclosed('(', ')'));
        // The crate also reads forms with braces or a prefix, which are longer.
        match (inner, inner.unwrap_or(text)) {
            (_, id) if id.len() == Hyphenated::LENGTH => Uuid::try_parse(id),
            (None, id) if id.len() == Simple::LENGTH => Uuid::try_parse(id),
            _ => return Err(NotAGuid),
        }
        .map_or(Err(NotAGuid), |id| Ok(Self(id)))
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
