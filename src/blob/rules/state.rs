//! The record of one state of a blob: the blob itself, a snapshot, or an older version.
//!
//! Decides which fields are kept with the content and how a customer's key is compared. The store
//! keeps the content and the name.

use serde::{Deserialize, Serialize};

use super::copy::CopyRecord;
use super::denial::BlobDenial;
use super::immutability::Immutability;
use super::tags::Tags;
use super::tier::TierRecord;
use crate::rules::lease::BlobLease;
use crate::rules::named::named;
use crate::rules::{Etag, Timestamp, Writer};

/// User metadata, in the order and spelling of the request.
pub type BlobMetadata = Vec<(String, String)>;

named! {
    /// The three types of blobs.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum BlobType,
    /// The value of `x-ms-blob-type`.
    name: &'static str {
        /// Made of blocks that are committed as a list.
        Block = "BlockBlob",
        /// Grows at its end.
        Append = "AppendBlob",
        /// Pages of 512 bytes, written anywhere.
        Page = "PageBlob",
    }
}

impl BlobType {
    /// Reads the value of `x-ms-blob-type`.
    pub fn from_name(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == text)
    }
}

/// The six properties that describe the content. Set together: a request that sets one clears
/// those which it leaves out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContentProperties {
    /// `Content-Type`; `application/octet-stream` if the blob was made without one, empty if it was
    /// cleared later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disposition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    /// `Content-MD5`. 16 bytes, unless a client set something else as a property.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub md5: Option<Vec<u8>>,
}

impl ContentProperties {
    /// These properties, and those of `source` where there is none.
    #[must_use]
    pub fn or(self, source: Self) -> Self {
        Self {
            content_type: self.content_type.or(source.content_type),
            encoding: self.encoding.or(source.encoding),
            language: self.language.or(source.language),
            disposition: self.disposition.or(source.disposition),
            cache_control: self.cache_control.or(source.cache_control),
            md5: self.md5.or(source.md5),
        }
    }

    /// The properties as Set Blob Properties sets them: a type that is left out is cleared, since
    /// the default is for new blobs.
    #[must_use]
    pub fn replacing(mut self) -> Self {
        self.content_type.get_or_insert_default();
        self
    }

    /// The type that is shown; empty if it was cleared.
    pub fn shown_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or("application/octet-stream")
    }
}

/// The scope of a container that was given none.
pub const ACCOUNT_SCOPE: &str = "$account-encryption-key";

/// How a blob was said to be encrypted. Nothing is encrypted here: the record is kept so that a
/// request without the right key is refused as by the service.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Encryption {
    /// The SHA-256 of the customer's key, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

impl Encryption {
    /// The encryption of a new blob where `default` is the scope of its container, and `only`
    /// denies every other. A customer's key takes the place of a scope.
    pub fn within(mut self, default: Option<&str>, only: bool) -> Result<Self, BlobDenial> {
        let usual = default.unwrap_or(ACCOUNT_SCOPE);
        if only && self.scope.as_deref().is_some_and(|scope| scope != usual) {
            return Err(BlobDenial::RequestForbiddenByContainerEncryptionPolicy);
        }
        if self.scope.is_none() && self.key_sha256.is_none() {
            self.scope = default.map(str::to_owned);
        }
        Ok(self)
    }

    /// True without a key and a scope.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Compares the key of a request (its SHA-256) with that of the blob.
    pub fn check_key(&self, presented: Option<&str>) -> Result<(), BlobDenial> {
        match (self.key_sha256.as_deref(), presented) {
            (Some(_), None) => Err(BlobDenial::BlobUsesCustomerSpecifiedEncryption),
            (None, Some(_)) => Err(BlobDenial::BlobDoesNotUseCustomerSpecifiedEncryption),
            (Some(kept), Some(presented)) if kept != presented => {
                Err(BlobDenial::BlobCustomerSpecifiedEncryptionMismatch)
            }
            _ => Ok(()),
        }
    }
}

/// One state of a blob.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BlobState {
    pub kind: BlobType,
    pub length: u64,
    /// Its version for conditions.
    pub etag: Etag,
    /// `Last-Modified`. Never earlier than that of the state before it.
    pub modified: Timestamp,
    /// `x-ms-creation-time`. Survives overwriting.
    pub created: Timestamp,
    /// Content type, encoding and the other content headers.
    pub content: ContentProperties,
    /// `x-ms-meta-*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata: BlobMetadata,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    #[serde(default)]
    pub tier: TierRecord,
    /// `x-ms-blob-sequence-number` of a page blob.
    #[serde(default)]
    pub sequence_number: u64,
    /// Committed blocks of a block or append blob.
    #[serde(default)]
    pub blocks: u32,
    /// Whether an append blob is sealed.
    #[serde(default)]
    pub sealed: bool,
    /// The last copy to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyRecord>,
    #[serde(default)]
    pub lease: BlobLease,
    /// Policy and legal hold.
    #[serde(default)]
    pub immutability: Immutability,
    /// Customer's key and scope.
    #[serde(default)]
    pub encryption: Encryption,
    /// The customer's key of its uncommitted blocks, while it has any.
    #[serde(default, skip_serializing_if = "Encryption::is_none")]
    pub staged: Encryption,
    /// `x-ms-version-id`, where the account keeps versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Timestamp>,
    /// The counter of the write that created the content: differences of pages are taken only
    /// between states of one creation.
    #[serde(default)]
    pub creation: u64,
    /// The last request that changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<Writer>,
    /// The last request that acquired, renewed, changed or broke its lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaser: Option<Writer>,
}

impl BlobState {
    /// A new state without content, as a write at `now` makes it.
    pub fn new(kind: BlobType, etag: Etag, now: Timestamp) -> Self {
        Self {
            kind,
            length: 0,
            etag,
            modified: now,
            created: now,
            content: ContentProperties::default(),
            metadata: BlobMetadata::new(),
            tags: Tags::default(),
            tier: TierRecord::default(),
            sequence_number: 0,
            blocks: 0,
            sealed: false,
            copy: None,
            lease: BlobLease::default(),
            immutability: Immutability::default(),
            encryption: Encryption::default(),
            staged: Encryption::default(),
            version: None,
            creation: etag.number(),
            writer: None,
            leaser: None,
        }
    }

    /// Moves `ETag` and Last-Modified, as a change at `now` does. Last-Modified never runs back,
    /// or If-Unmodified-Since would hold for a blob that was changed.
    pub fn touch(&mut self, etag: Etag, now: Timestamp) {
        self.etag = etag;
        self.modified = self.modified.max(now);
    }

    /// The state as it is at `now`: a copy that was held back until then has ended.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        let ended = self.copy.as_ref().and_then(|copy| copy.ended(now));
        if let (Some(end), Some(copy)) = (ended, &mut self.copy) {
            copy.finish(end.due);
            (self.length, self.blocks) = (copy.total, end.blocks);
            self.touch(end.etag, end.due);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::copy::HeldCopy;
    use super::*;
    use crate::rules::copy_status::CopyStatus;

    #[test]
    fn types_are_read_as_they_are_written() {
        for kind in [BlobType::Block, BlobType::Append, BlobType::Page] {
            assert_eq!(BlobType::from_name(kind.name()), Some(kind));
        }
        assert_eq!(BlobType::from_name("blockblob"), None);
    }

    #[test]
    fn last_modified_never_runs_back() {
        let etag = |n| Etag::from_number(n);
        let mut blob = BlobState::new(BlobType::Block, etag(1), Timestamp(100));
        blob.touch(etag(2), Timestamp(50));
        assert_eq!((blob.etag, blob.modified), (etag(2), Timestamp(100)));
        blob.touch(etag(3), Timestamp(150));
        assert_eq!((blob.etag, blob.modified), (etag(3), Timestamp(150)));
    }

    #[test]
    fn a_copy_that_is_held_back_ends_by_the_time_alone() {
        let etag = |n| Etag::from_number(n);
        let mut blob = BlobState::new(BlobType::Block, etag(1), Timestamp(10));
        let mut copy = CopyRecord::pending("id".into(), "source".into(), 5);
        copy.held = Some(HeldCopy { due: Timestamp(20), etag: etag(2), blocks: 3 });
        blob.copy = Some(copy);
        assert_eq!(blob.clone().at(Timestamp(19)), blob);
        let done = blob.clone().at(Timestamp(30));
        assert_eq!((done.length, done.blocks, done.etag), (5, 3, etag(2)));
        assert_eq!(done.modified, Timestamp(20));
        let copy = done.copy.clone().unwrap();
        assert_eq!((copy.status, copy.completed), (CopyStatus::Success, Some(Timestamp(20))));
        assert_eq!(done.clone().at(Timestamp(40)), done);
        blob.copy.as_mut().unwrap().abort(Timestamp(15));
        assert_eq!(blob.clone().at(Timestamp(30)), blob, "an aborted copy does not end again");
    }

    #[test]
    fn a_customers_key_must_be_the_blobs() {
        let plain = Encryption::default();
        let keyed = Encryption { key_sha256: Some("k1".into()), scope: None };
        assert_eq!(plain.check_key(None), Ok(()));
        assert_eq!(keyed.check_key(Some("k1")), Ok(()));
        for (encryption, key, denial) in [
            (&keyed, None, BlobDenial::BlobUsesCustomerSpecifiedEncryption),
            (&keyed, Some("k2"), BlobDenial::BlobCustomerSpecifiedEncryptionMismatch),
            (&plain, Some("k1"), BlobDenial::BlobDoesNotUseCustomerSpecifiedEncryption),
        ] {
            assert_eq!(encryption.check_key(key), Err(denial));
        }
    }

    #[test]
    fn a_new_blob_has_the_scope_of_its_request_or_of_its_container() {
        let sent = |scope: Option<&str>| Encryption {
            scope: scope.map(str::to_owned),
            ..Encryption::default()
        };
        for (scope, default, only, expected) in [
            (None, None, false, Some(None)),
            (None, Some("a"), false, Some(Some("a"))),
            (None, Some("a"), true, Some(Some("a"))),
            (Some("b"), Some("a"), false, Some(Some("b"))),
            (Some("a"), Some("a"), true, Some(Some("a"))),
            (Some("b"), Some("a"), true, None),
            (Some(ACCOUNT_SCOPE), None, true, Some(Some(ACCOUNT_SCOPE))),
            (Some("b"), None, true, None),
        ] {
            let found = sent(scope).within(default, only);
            let denial = BlobDenial::RequestForbiddenByContainerEncryptionPolicy;
            let expected = expected.map(sent).ok_or(denial);
            assert_eq!(found, expected, "{scope:?} {default:?} {only}");
        }
        let keyed = Encryption { key_sha256: Some("k".into()), scope: None };
        assert_eq!(keyed.clone().within(Some("a"), false), Ok(keyed));
    }

    #[test]
    fn properties_that_were_not_sent_are_those_of_the_source() {
        let of = |text: &str| ContentProperties {
            content_type: Some(format!("{text} type")),
            encoding: Some(format!("{text} encoding")),
            language: Some(format!("{text} language")),
            disposition: Some(format!("{text} disposition")),
            cache_control: Some(format!("{text} cache")),
            md5: Some(text.as_bytes().to_vec()),
        };
        let none = ContentProperties::default();
        let (sent, source) = (of("sent"), of("source"));
        assert_eq!(sent.clone().or(source.clone()), sent);
        assert_eq!(none.clone().or(source.clone()), source);
        assert_eq!(sent.clone().or(none), sent);
        let language = ContentProperties { language: sent.language, ..Default::default() };
        let mixed = ContentProperties { language: language.language.clone(), ..source.clone() };
        assert_eq!(language.or(source), mixed);
    }

    #[test]
    fn a_record_survives_being_stored() {
        let mut blob = BlobState::new(BlobType::Page, Etag::from_number(7), Timestamp(100));
        blob.metadata = vec![("k".into(), "v".into())];
        blob.content.md5 = Some(vec![1; 16]);
        blob.version = Some(Timestamp(5));
        let text = serde_json::to_string(&blob).unwrap();
        assert_eq!(serde_json::from_str::<BlobState>(&text).unwrap(), blob);
        assert!(text.contains(r#""md5":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"#), "as 0.2 has it");
    }
}
