//! List Blobs, flat and by hierarchy.
//!
//! Decides the elements of the answer and the form of the marker: JSON in base64, since a name may
//! hold what XML cannot carry.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::BlobCall;
use super::headers::md5_text;
use super::read::write_tags;
use crate::blob::rules::BlobType;
use crate::blob::service::{BlobListItem, ListBlobs, ListPosition, ListedState, StateKey};
use crate::http::auth::Permission;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::http::xml::Xml;
use crate::rules::Timestamp;
use crate::rules::address::ObjectAddress;
use crate::rules::time::{iso, rfc1123};

/// Most entries of a page.
pub(super) const LIST_MAX: usize = 5_000;

/// The legal values of `include`.
const INCLUDE: [&str; 11] = [
    "snapshots",
    "metadata",
    "uncommittedblobs",
    "copy",
    "deleted",
    "tags",
    "versions",
    "deletedwithversions",
    "immutabilitypolicy",
    "legalhold",
    "permissions",
];

impl BlobCall<'_> {
    /// The words of `include`, each of which must be known.
    pub(super) fn include(&self, known: &[&str]) -> Result<Vec<String>, Refusal> {
        let words = self.query.words("include");
        match words.iter().find(|word| !known.contains(&word.as_str())) {
            None => Ok(words),
            Some(word) => Err(Refusal::query("include", word, "it is not known")),
        }
    }

    pub(super) fn list_blobs(self) -> Answer {
        let name = self.container_name()?;
        let include = self.include(&INCLUDE)?;
        let has = |word: &str| include.iter().any(|given| given == word);
        let delimiter = self.query.get("delimiter").map(str::to_owned);
        if delimiter.is_some() && has("snapshots") {
            let why = "snapshots are not listed with a delimiter";
            return Err(Refusal::query("include", "snapshots", why));
        }
        if has("tags") {
            self.check_letter(Permission::Tags)?;
        }
        if ["deleted", "deletedwithversions", "uncommittedblobs"].into_iter().any(has) {
            self.check_not_anonymous()?;
        }
        let max = self.page_size(LIST_MAX)?;
        let from = match (self.query.get("marker"), self.query.get("startfrom")) {
            (Some(marker), _) => Some(read_marker(marker)?),
            (None, Some(name)) => Some(ListPosition { name: name.to_owned(), key: None }),
            (None, None) => None,
        };
        let query = ListBlobs {
            prefix: self.query.get("prefix").unwrap_or_default().to_owned(),
            delimiter,
            from,
            before: self.query.get("endbefore").map(str::to_owned),
            limit: max,
            snapshots: has("snapshots"),
            versions: has("versions"),
            uncommitted: has("uncommittedblobs"),
            deleted: has("deleted"),
            deleted_with_versions: has("deletedwithversions"),
        };
        let page = self.told(self.engine()?.list_blobs(self.cx(), name, &query))?;
        let parts = ["marker", "startfrom", "endbefore", "delimiter"];
        let is_part = page.next.is_some() || parts.iter().any(|it| self.query.get(it).is_some());
        self.cx().note(|given| {
            given.listed_more |= is_part;
            for item in &page.items {
                let BlobListItem::Blob(blob) = item else { continue };
                if !blob.is_current {
                    continue;
                }
                let (container, blob_name) = (name.to_owned(), blob.name.clone());
                let object = ObjectAddress::Blob { container, name: blob_name };
                given.lists(object, Some(blob.state.etag.quoted()));
            }
        });
        let mut xml = Xml::default();
        let endpoint = self.address.endpoint.as_str();
        let attributes = [("ServiceEndpoint", endpoint), ("ContainerName", name)];
        xml.open_with("EnumerationResults", &attributes);
        if let Some(prefix) = self.query.get("prefix") {
            xml.file_name("Prefix", prefix);
        }
        xml.maybe("Marker", self.query.get("marker"));
        if self.query.get("maxresults").is_some() {
            xml.text("MaxResults", &max.to_string());
        }
        xml.maybe("Delimiter", self.query.get("delimiter"));
        xml.open("Blobs");
        for item in &page.items {
            match item {
                BlobListItem::Prefix(prefix) => {
                    xml.open("BlobPrefix");
                    xml.file_name("Name", prefix);
                    xml.close("BlobPrefix");
                }
                BlobListItem::Blob(blob) => write_blob(&mut xml, blob, &has, self.now),
            }
        }
        xml.close("Blobs");
        xml.text("NextMarker", &page.next.as_ref().map(write_marker).unwrap_or_default());
        xml.close("EnumerationResults");
        Ok(Reply::ok().xml(xml))
    }
}

/// A position as text.
fn write_marker(position: &ListPosition) -> String {
    let key = position.key.map(|key| match key {
        StateKey::Snapshot(moment) => (0, moment.0),
        StateKey::Version(moment) => (1, moment.0),
        StateKey::Deleted(moment) => (2, moment.0),
        StateKey::Current => (3, 0),
        StateKey::Uncommitted => (4, 0),
    });
    let fields = (&position.name, key);
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&fields).unwrap_or_default())
}

fn read_marker(text: &str) -> Result<ListPosition, Refusal> {
    let bad = || Refusal::query("marker", text, "it is not a marker that this server issued");
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| bad())?;
    let (name, key): (String, Option<(u8, i64)>) =
        serde_json::from_slice(&bytes).map_err(|_| bad())?;
    let key = match key {
        None => None,
        Some((0, moment)) => Some(StateKey::Snapshot(Timestamp(moment))),
        Some((1, moment)) => Some(StateKey::Version(Timestamp(moment))),
        Some((2, moment)) => Some(StateKey::Deleted(Timestamp(moment))),
        Some((3, _)) => Some(StateKey::Current),
        Some((4, _)) => Some(StateKey::Uncommitted),
        Some(_) => return Err(bad()),
    };
    Ok(ListPosition { name, key })
}

fn write_blob(xml: &mut Xml, blob: &ListedState, has: &impl Fn(&str) -> bool, now: Timestamp) {
    let state = &blob.state;
    xml.open("Blob");
    xml.file_name("Name", &blob.name);
    xml.maybe("Snapshot", blob.snapshot.map(iso).as_deref());
    if has("versions") || has("deletedwithversions") {
        xml.maybe("VersionId", blob.version.map(iso).as_deref());
        if blob.is_current && blob.version.is_some() {
            xml.text("IsCurrentVersion", "true");
        }
    }
    if blob.deleted.is_some() {
        xml.text("Deleted", "true");
    }
    xml.open("Properties");
    write_properties(xml, blob, now);
    if has("copy") {
        write_copy(xml, blob);
    }
    xml.text("ServerEncrypted", "true");
    if !state.tags.is_empty() {
        xml.text("TagCount", &state.tags.len().to_string());
    }
    if let Some(deleted) = blob.deleted {
        xml.text("DeletedTime", &rfc1123(deleted.deleted));
        let days = deleted.until.since(now).as_secs().div_ceil(86_400);
        xml.text("RemainingRetentionDays", &days.to_string());
    }
    if state.kind == BlobType::Append && state.sealed {
        xml.text("Sealed", "true");
    }
    if let Some(policy) = state.immutability.policy.filter(|_| has("immutabilitypolicy")) {
        xml.text("ImmutabilityPolicyUntilDate", &rfc1123(policy.until));
        xml.text("ImmutabilityPolicyMode", &policy.mode.to_string());
    }
    if let Some(hold) = state.immutability.legal_hold.filter(|_| has("legalhold")) {
        xml.text("LegalHold", &hold.to_string());
    }
    xml.close("Properties");
    if has("metadata") {
        xml.open("Metadata");
        for (name, value) in &state.metadata {
            xml.text(name, value);
        }
        xml.close("Metadata");
    }
    if has("tags") && !state.tags.is_empty() {
        xml.open("Tags");
        write_tags(xml, &state.tags);
        xml.close("Tags");
    }
    if blob.has_versions_only {
        xml.text("HasVersionsOnly", "true");
    }
    xml.empty("OrMetadata");
    xml.close("Blob");
}

fn write_properties(xml: &mut Xml, blob: &ListedState, now: Timestamp) {
    let (state, content) = (&blob.state, &blob.state.content);
    if !blob.is_uncommitted {
        xml.text("Creation-Time", &rfc1123(state.created));
        xml.text("Last-Modified", &rfc1123(state.modified));
        xml.text("Etag", &state.etag.to_string());
    }
    xml.text("Content-Length", &state.length.to_string());
    xml.text("Content-Type", content.shown_type());
    xml.text("Content-Encoding", content.encoding.as_deref().unwrap_or_default());
    xml.text("Content-Language", content.language.as_deref().unwrap_or_default());
    xml.empty("Content-CRC64");
    if !blob.is_uncommitted {
        let md5 = content.md5.as_ref().map(md5_text);
        xml.text("Content-MD5", &md5.unwrap_or_default());
    }
    xml.text("Cache-Control", content.cache_control.as_deref().unwrap_or_default());
    xml.text("Content-Disposition", content.disposition.as_deref().unwrap_or_default());
    if state.kind == BlobType::Page {
        xml.text("x-ms-blob-sequence-number", &state.sequence_number.to_string());
    }
    xml.text("BlobType", state.kind.name());
    if state.kind == BlobType::Block {
        xml.text("AccessTier", &state.tier.tier(now).to_string());
        if state.tier.is_inferred() {
            xml.text("AccessTierInferred", "true");
        }
        xml.maybe("AccessTierChangeTime", state.tier.changed.map(rfc1123).as_deref());
        if let Some(to) = state.tier.pending(now) {
            let to = to.to_string().to_ascii_lowercase();
            xml.text("ArchiveStatus", &format!("rehydrate-pending-to-{to}"));
        }
    }
    if blob.is_current || blob.is_uncommitted {
        xml.text("LeaseStatus", &state.lease.status(now).to_string());
        xml.text("LeaseState", &state.lease.state(now).to_string());
        xml.maybe("LeaseDuration", state.lease.duration(now).map(|it| it.to_string()).as_deref());
    }
    xml.maybe("CustomerProvidedKeySha256", state.encryption.key_sha256.as_deref());
    xml.maybe("EncryptionScope", state.encryption.scope.as_deref());
}

fn write_copy(xml: &mut Xml, blob: &ListedState) {
    let Some(copy) = &blob.state.copy else { return };
    xml.text("CopyId", &copy.id);
    xml.text("CopySource", &copy.source);
    xml.text("CopyStatus", &copy.status.to_string());
    xml.text("CopyProgress", &copy.progress());
    xml.maybe("CopyCompletionTime", copy.completed.map(rfc1123).as_deref());
    xml.maybe("CopyStatusDescription", copy.description.as_deref());
}
