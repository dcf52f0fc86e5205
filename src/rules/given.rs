//! What a request read and changed, for its row in the journal.
//!
//! Decides how much of a list a row keeps. The services and the HTTP front end fill it in while
//! they carry a request out, in a value that the request and its transaction share; what the head
//! of a request asks for is in [`super::asked`].

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Serialize, Serializer};

use super::Timestamp;
use super::address::ObjectAddress;
use super::asked::{Fingerprint, Parts};
use super::time::iso;

/// The most objects of a list that a row keeps.
pub const LISTED_MAX: usize = 256;

/// What a request read and changed, as far as it is known. The names are those of the fields in
/// JSON.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Given {
    /// The `ETag` of the object that it read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag_read: Option<String>,
    /// The objects that it changed: one, or several for a batch or a rename.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedObject>,
    /// The objects that a list or a query has shown, at most [`LISTED_MAX`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<ListedObject>,
    /// The list has shown more than `listed` has.
    #[serde(skip_serializing_if = "is_false")]
    pub listed_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_given: Option<Fingerprint>,
    /// When the lease ends by itself; none if it is infinite.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "iso_option")]
    pub lease_until: Option<Timestamp>,
    /// The messages that it was given, or whose receipt it was given anew.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<GivenMessage>,
    /// A hash of the body.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "hex_option")]
    pub body: Option<u64>,
}

/// An object that a request changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ChangedObject {
    #[serde(serialize_with = "as_text")]
    pub object: ObjectAddress,
    /// None if it was not there before, or has no `ETag`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag_before: Option<String>,
    /// As before if the change does not move it; none if the object is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag_after: Option<String>,
    /// The part of it that was changed, if it is not the part that the request asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// In a batch, whether a condition or a lease guarded this part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guarded: Option<bool>,
}

impl Given {
    /// About how much memory its lists take.
    pub fn lists_bytes(&self) -> usize {
        // An address and an ETag, or the names of properties.
        const ENTRY: usize = 192;
        let parts = self.changed.iter().filter_map(|changed| changed.parts.as_ref());
        let entries = self.listed.len() + self.changed.len() + self.messages.len();
        entries * ENTRY + parts.map(Parts::names_bytes).sum::<usize>()
    }

    /// Notes an object that a list shows.
    pub fn lists(&mut self, object: ObjectAddress, etag: Option<String>) {
        if self.listed.len() < LISTED_MAX {
            self.listed.push(ListedObject(object, etag));
        } else {
            self.listed_more = true;
        }
    }
}

/// An object in a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ListedObject(
    #[serde(serialize_with = "as_text")] pub ObjectAddress,
    /// Its `ETag`.
    pub Option<String>,
);

/// A message of a queue as a client is given it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct GivenMessage {
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt_given: Option<Fingerprint>,
    #[serde(serialize_with = "iso_text")]
    pub visible_until: Timestamp,
    pub dequeue_count: u64,
}

fn as_text<S: Serializer>(text: &impl ToString, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text.to_string())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn iso_text<S: Serializer>(when: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&iso(*when))
}

#[expect(clippy::ref_option, reason = "the form that serde calls")]
fn iso_option<S: Serializer>(when: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    when.map(iso).serialize(to)
}

#[expect(clippy::ref_option, reason = "the form that serde calls")]
fn hex_option<S: Serializer>(hash: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    hash.map(|hash| format!("{hash:016x}")).serialize(to)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// What a request under way has read and changed.
#[derive(Debug, Default)]
pub struct Noted(Mutex<Given>);

impl Noted {
    pub fn note(&self, note: impl FnOnce(&mut Given)) {
        note(&mut self.given());
    }

    /// How many changes were noted.
    pub fn changes(&self) -> usize {
        self.given().changed.len()
    }

    /// Forgets all changes but the first ones: those of a transaction that begins anew, or failed.
    pub fn keep_changes(&self, first: usize) {
        self.given().changed.truncate(first);
    }

    /// All that was noted.
    pub fn take(&self) -> Given {
        std::mem::take(&mut *self.given())
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_has_objects_as_commands_name_them_and_moments_as_the_services_write_them() {
        let object = || ObjectAddress::read("blob:docs/a").unwrap();
        let etags = (Some("\"1\"".to_owned()), Some("\"2\"".to_owned()));
        let given = Given {
            changed: vec![ChangedObject {
                object: object(),
                etag_before: etags.0.clone(),
                etag_after: etags.1,
                parts: None,
                guarded: None,
            }],
            listed: vec![ListedObject(object(), etags.0)],
            lease_until: Some(Timestamp(0)),
            body: Some(0xab),
            ..Given::default()
        };
        assert_eq!(
            serde_json::to_value(&given).unwrap(),
            json!({
                "changed": [
                    { "object": "blob:docs/a", "etag_before": "\"1\"", "etag_after": "\"2\"" },
                ],
                "listed": [["blob:docs/a", "\"1\""]],
                "lease_until": "1970-01-01T00:00:00.0000000Z",
                "body": "00000000000000ab",
            })
        );
        assert_eq!(serde_json::to_value(Given::default()).unwrap(), json!({}));
    }
}
