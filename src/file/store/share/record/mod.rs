//! The metadata record: the properties of a file that have no place in its inode.
//!
//! Decides the fields and the stored form (versioned JSON). Where the record is kept is decided in
//! [`records`]. A file without a record has the default properties.
//!
//! A field that an older build does not know is ignored by it, and lost when it saves the
//! record; so a field that must not be lost raises [`VERSION`], and an older build then refuses
//! the record rather than strip it.

mod range_account;
mod records;
#[cfg(test)]
mod tests;
mod xattr;

use serde::{Deserialize, Serialize};

use crate::disk::error::StoreError;
use crate::file::rules::Attributes;
use crate::rules::Timestamp;
use crate::rules::copy_status::CopyStatus;

pub use crate::rules::Metadata;
pub use range_account::{BLOCK, PAGE, RangeAccount, Touch, TouchedRange, splits_a_block};
pub use records::Records;

/// The form written here, and the newest that is understood.
const VERSION: u32 = 1;

/// The metadata of one file that its inode cannot hold. The last-write time is in the inode.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// `x-ms-meta-*`.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// The HTTP headers stored with a file.
    #[serde(skip_serializing_if = "HttpHeaders::is_empty")]
    pub headers: HttpHeaders,
    /// Attributes; none if they were never set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Attributes>,
    /// Creation time, if it is not to be the inode's birth time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// Change time, if it is not to be the inode's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Timestamp>,
    /// Key of the permission in the share's own list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_key: Option<String>,
    /// The last copy onto this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyState>,
    /// The ranges that REST wrote and cleared, where the blocks of the file system do not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranges: Option<RangeAccount>,
    /// Changes that the inode's change time may not show; part of the `ETag`. Only ever raised:
    /// an emptied record must keep this number, or an old `ETag` would come back.
    #[serde(skip_serializing_if = "is_zero")]
    pub changes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Content headers, given back as they were set. Naming one in a request sets all of them, so
/// they go together.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpHeaders {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_disposition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    /// `Content-MD5` in base64, as the client gave it; it is never computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_md5: Option<String>,
}

impl HttpHeaders {
    /// True if none is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The `x-ms-copy-*` answers about the last copy onto a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CopyState {
    pub id: String,
    /// `x-ms-copy-source`: the URL as it was given.
    pub source: String,
    pub status: CopyStatus,
    pub progress: CopyProgress,
    /// `x-ms-copy-completion-time`, once it ended one way or the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Timestamp>,
    /// `x-ms-copy-status-description`, of a copy that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Bytes copied so far, of how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CopyProgress {
    pub done: u64,
    pub total: u64,
}

impl Record {
    /// True if it says nothing at all, so that it need not be kept.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The fields before a record's own, in the attribute and in the sidecar.
#[derive(Serialize, Deserialize)]
struct RecordHead {
    v: u32,
    /// In an extended attribute: the record is in the sidecar. The number is that of its
    /// changes, there to make the attribute, and thus the inode's change time, move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sidecar: Option<u64>,
}

#[derive(Serialize)]
struct WrittenRecord<'a> {
    #[serde(flatten)]
    head: RecordHead,
    #[serde(flatten)]
    record: &'a Record,
}

fn encode(sidecar: Option<u64>, record: &Record) -> Vec<u8> {
    let head = RecordHead { v: VERSION, sidecar };
    serde_json::to_vec(&WrittenRecord { head, record })
        .expect("a record has text keys only and no value that JSON lacks")
}

impl Record {
    /// A record as it is kept in an extended attribute.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        decode(bytes, || "a record".to_owned()).map(|(_, record)| record)
    }
}

/// Reads what [`encode`] wrote; `what` names it in the error.
fn decode(bytes: &[u8], what: impl Fn() -> String) -> Result<(RecordHead, Record), StoreError> {
    let damaged = |why: String| StoreError::Damaged { what: what(), why };
    let head: RecordHead =
        serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    if head.v > VERSION {
        return Err(damaged(format!(
            "it is of version {}, written by a newer latchfs; this one reads up to {VERSION}",
            head.v
        )));
    }
    let record = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    Ok((head, record))
}
