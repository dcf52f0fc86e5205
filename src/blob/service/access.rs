//! The address of a blob in a request, and the demands of the request on it.
//!
//! Front ends fill these in; the rules are asked in [`super::change`].

use crate::blob::rules::name::kept_name;
use crate::blob::rules::tags::query::TagQuery;
use crate::rules::Timestamp;
use crate::rules::conditions::Conditions;
use crate::rules::lease::LeaseId;

/// A blob, or an older state of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobAt {
    pub container: String,
    pub name: String,
    pub selector: Selector,
}

/// Which state of a blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Selector {
    /// The blob as it is.
    #[default]
    Current,
    /// The snapshot taken at that moment.
    Snapshot(Timestamp),
    /// The version made at that moment, which may be the current one.
    Version(Timestamp),
}

impl BlobAt {
    /// The blob as it is. `name` may have backslashes.
    pub fn new(container: impl Into<String>, name: impl Into<String>) -> Self {
        let name = kept_name(name.into().into()).into_owned();
        Self { container: container.into(), name, selector: Selector::Current }
    }

    /// An older state of it.
    #[must_use]
    pub fn state(mut self, selector: Selector) -> Self {
        self.selector = selector;
        self
    }
}

/// The demands of a request on the object that it names: conditions, lease ID, key. Conditions that
/// the operation does not take must be left out.
#[derive(Clone, Debug, Default)]
pub struct AccessConditions {
    /// `If-Match` and its like.
    pub conditions: Conditions,
    pub tags: Option<TagQuery>,
    pub lease: Option<LeaseId>,
    /// The SHA-256 of the customer's key, base64.
    pub key: Option<String>,
    /// Whether the caller may create blobs and not write existing ones.
    pub only_new: bool,
}
