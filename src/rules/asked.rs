//! What the head of a request asks for, beside its operation and its object: conditions, lease,
//! receipt, and the part of the object that it concerns.
//!
//! Decides nothing: the journal and the gates tell it, the report judges by it. Secrets are here
//! as fingerprints alone.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// The most bytes of names of properties that are kept of a request; more count as the whole
/// entity.
const NAMES_BYTES: usize = 4 << 10;

/// Stands for a secret: equal secrets have equal fingerprints, and none tells its secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fingerprint(pub u32);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The part of an object that a request reads or changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Parts {
    Metadata,
    Tags,
    /// The properties of the content, the tier, the access policy.
    Headers,
    Lease,
    /// Blocks that are not committed.
    Blocks,
    /// Bytes, from the first number up to the second, without it.
    Range(u64, u64),
    /// The properties of an entity with these names.
    #[serde(serialize_with = "texts")]
    Properties(Arc<[Box<str>]>),
}

impl Parts {
    /// The properties with these names; none, the whole entity, if they are too long.
    pub fn properties<'a>(names: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut left = NAMES_BYTES;
        let mut kept = Vec::new();
        for name in names {
            left = left.checked_sub(name.len().max(1))?;
            kept.push(name.into());
        }
        Some(Self::Properties(kept.into()))
    }

    /// About how much memory its names take.
    pub fn names_bytes(&self) -> usize {
        match self {
            Self::Properties(names) => names.iter().map(|name| name.len() + 32).sum(),
            _ => 0,
        }
    }

    /// Whether two parts of one object have something in common; no part is the whole object.
    pub fn overlap(one: Option<&Self>, other: Option<&Self>) -> bool {
        match (one, other) {
            (None, _) | (_, None) => true,
            (Some(Self::Range(first, end)), Some(Self::Range(other, last))) => {
                first < last && other < end
            }
            (Some(Self::Properties(names)), Some(Self::Properties(others))) => {
                names.iter().any(|name| others.contains(name))
            }
            (Some(one), Some(other)) => one == other,
        }
    }
}

fn texts<S: Serializer>(texts: &[Box<str>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(texts)
}

/// What the head of a request asks for. The names are those of the journal's fields.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Asked {
    /// The object that is copied or renamed: its address if it is in this account, or else its
    /// URL without a signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The bytes of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_range: Option<String>,
    /// The snapshot or version of the object that is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The names that a list is limited to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// None: the whole object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_match: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_none_match: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_modified_since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_unmodified_since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_tags: Option<String>,
    /// The length that an append blob must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_position: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_sent: Option<Fingerprint>,
    /// `acquire`, `renew`, `change`, `release` or `break`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_action: Option<String>,
    /// The message of a queue that the path names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt_used: Option<Fingerprint>,
    /// The length of the body, as it was announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The trace ID of `traceparent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

impl Asked {
    /// Whether a condition on the version that a change replaces, or the lease of the object,
    /// guards the change. A date guards nothing: a second is too coarse.
    pub fn guards(&self) -> bool {
        self.if_match.as_deref().is_some_and(|etag| etag != "*")
            || self.if_none_match.as_deref() == Some("*")
            || self.if_tags.is_some()
            || self.append_position.is_some()
            || self.lease_sent.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_object_overlap_if_they_have_something_in_common() {
        let names = |names: &[&str]| Parts::properties(names.iter().copied());
        for (one, other, overlap) in [
            (None, None, true),
            (None, Some(Parts::Metadata), true),
            (Some(Parts::Metadata), Some(Parts::Metadata), true),
            (Some(Parts::Metadata), Some(Parts::Tags), false),
            (Some(Parts::Range(0, 512)), Some(Parts::Range(511, 600)), true),
            (Some(Parts::Range(0, 512)), Some(Parts::Range(512, 600)), false),
            (Some(Parts::Range(0, 512)), Some(Parts::Metadata), false),
            (names(&["a", "b"]), names(&["b"]), true),
            (names(&["a", "b"]), names(&["c"]), false),
            (names(&["a", &"b".repeat(NAMES_BYTES)]), names(&["c"]), true),
        ] {
            assert_eq!(Parts::overlap(one.as_ref(), other.as_ref()), overlap, "{one:?} {other:?}");
            assert_eq!(Parts::overlap(other.as_ref(), one.as_ref()), overlap, "{other:?} {one:?}");
        }
    }

    #[test]
    fn a_field_that_a_request_does_not_have_is_left_out() {
        let asked = Asked {
            if_match: Some("*".into()),
            lease_sent: Some(Fingerprint(0xab)),
            parts: Some(Parts::Range(0, 512)),
            ..Asked::default()
        };
        let json = r#"{"parts":{"range":[0,512]},"if_match":"*","lease_sent":"000000ab"}"#;
        assert_eq!(serde_json::to_string(&asked).unwrap(), json);
    }
}
