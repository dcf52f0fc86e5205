//! Headers that describe a blob: those that a request sets, and those that answers carry.
//!
//! Decides their names and order of precedence. What they mean is decided in the rules and by the
//! engine.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use percent_encoding::percent_decode_str;

use super::BlobCall;
use crate::blob::rules::copy::CopyRecord;
use crate::blob::rules::immutability::{Immutability, ImmutabilityPolicy, PolicyMode};
use crate::blob::rules::tags::{TagError, Tags};
use crate::blob::rules::tier::{NoTier, Tier};
use crate::blob::rules::{BlobMetadata, BlobState, BlobType, ContentProperties, Encryption};
use crate::blob::service::{Blob, NewBlob, WrittenBlob};
use crate::http::auth::Permission;
use crate::http::frame::refusal::Refusal;
use crate::http::header_case::META;
use crate::http::reply::Reply;
use crate::rules::lease::{LeaseKind, TimedLease};
use crate::rules::time::{iso, parse_rfc1123, rfc1123};
use crate::rules::{Etag, Timestamp, check_metadata};

/// Longest value of `x-ms-tags`.
const TAGS_BYTES_MAX: usize = 2 << 10;

impl BlobCall<'_> {
    /// `x-ms-meta-*`.
    pub(super) fn metadata_sent(&self) -> Result<BlobMetadata, Refusal> {
        let given = self.metadata()?;
        check_metadata(given.iter())?;
        Ok(given.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// The properties of the content that `x-ms-blob-*` headers set; `None` if none is sent.
    pub(super) fn content_sent(&self) -> Result<Option<ContentProperties>, Refusal> {
        let names = ["type", "encoding", "language", "disposition", "md5"];
        let names = names.map(|name| format!("x-ms-blob-content-{name}"));
        let cache = "x-ms-blob-cache-control";
        let sent = |name: &str| self.headers.contains_key(name);
        if !names.iter().any(|name| sent(name)) && !sent(cache) {
            return Ok(None);
        }
        let text = |name: &str| Ok::<_, Refusal>(self.header(name)?.map(str::to_owned));
        Ok(Some(ContentProperties {
            content_type: text(&names[0])?,
            encoding: text(&names[1])?,
            language: text(&names[2])?,
            disposition: text(&names[3])?,
            cache_control: text(cache)?,
            md5: self.md5_property(&names[4])?,
        }))
    }

    /// The properties of new content: where no `x-ms-blob-` header is sent, the standard one of
    /// Put Blob counts.
    pub(super) fn content_new(&self, standard: bool) -> Result<ContentProperties, Refusal> {
        let mut content = self.content_sent()?.unwrap_or_default();
        if standard {
            let text = |name: &str| Ok::<_, Refusal>(self.header(name)?.map(str::to_owned));
            let or = |sent: Option<String>, name: &str| {
                sent.map_or_else(|| text(name), |it| Ok(Some(it)))
            };
            content.content_type = or(content.content_type, "content-type")?;
            content.encoding = or(content.encoding, "content-encoding")?;
            content.language = or(content.language, "content-language")?;
            content.cache_control = or(content.cache_control, "cache-control")?;
        }
        Ok(content)
    }

    /// An MD5 in base64 that is compared with content.
    pub(super) fn md5_header(&self, name: &str) -> Result<Option<[u8; 16]>, Refusal> {
        let Some(bytes) = self.md5_property(name)? else { return Ok(None) };
        bytes.try_into().map(Some).map_err(|_| Refusal::bad_because("InvalidMd5", ""))
    }

    /// An MD5 in base64 that is kept with a blob. The service takes bytes of any length where it
    /// has no content to compare them with.
    fn md5_property(&self, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(text) = self.header(name)? else { return Ok(None) };
        let bytes = md5_of(text);
        bytes.map(Some).ok_or_else(|| Refusal::bad_because("InvalidMd5", ""))
    }

    /// The properties of a new blob, without its content.
    pub(super) fn new_blob(&self, standard: bool) -> Result<NewBlob, Refusal> {
        Ok(NewBlob {
            content: self.content_new(standard)?,
            metadata: self.metadata_sent()?,
            tags: self.tags_sent()?,
            tier: self.tier_sent()?,
            encryption: self.encryption_sent()?,
            immutability: self.immutability_sent()?,
            page_length: 0,
            sequence_number: 0,
        })
    }

    /// `x-ms-access-tier`.
    pub(super) fn tier_sent(&self) -> Result<Option<Tier>, Refusal> {
        const NAME: &str = "x-ms-access-tier";
        let Some(text) = self.header(NAME)? else { return Ok(None) };
        text.parse().map(Some).map_err(|no| match no {
            NoTier::Premium => Refusal::bad(
                "AccessTierNotSupportedForBlobType",
                "The access tier is not supported for this blob type.",
            ),
            NoTier::Unknown => Refusal::header(NAME, text, "it is not a tier"),
        })
    }

    /// `x-ms-tags`, a query string.
    pub(super) fn tags_sent(&self) -> Result<Tags, Refusal> {
        let Some(text) = self.header("x-ms-tags")? else { return Ok(Tags::default()) };
        self.check_letter(Permission::Tags)?;
        if text.len() > TAGS_BYTES_MAX {
            return Err(bad_tags(&TagError::TooMany));
        }
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            percent_decode_str(&text).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key), decoded(value))
        });
        Tags::new(pairs).map_err(|error| bad_tags(&error))
    }

    /// The customer's key and the scope of a request.
    pub(super) fn encryption_sent(&self) -> Result<Encryption, Refusal> {
        Ok(Encryption { key_sha256: self.customer_key()?, scope: self.scope_sent()? })
    }

    /// The encryption scope of a request: that of its header, or that of its SAS, which permits no
    /// other.
    pub(super) fn scope_sent(&self) -> Result<Option<String>, Refusal> {
        let sent = self.header("x-ms-encryption-scope")?.map(str::to_owned);
        let Some(signed) = &self.grant.encryption_scope else { return Ok(sent) };
        match sent {
            Some(sent) if sent != *signed => {
                let why = format_args!("the SAS is for the encryption scope '{signed}'");
                Err(Refusal::explained(StatusCode::FORBIDDEN, "AuthorizationFailure", why))
            }
            _ => Ok(Some(signed.clone())),
        }
    }

    fn immutability_sent(&self) -> Result<Immutability, Refusal> {
        let legal_hold = match self.header("x-ms-legal-hold")? {
            None => None,
            Some(_) => Some(self.flag("x-ms-legal-hold")?),
        };
        let policy = self.policy_sent()?;
        if policy.is_some() || legal_hold.is_some() {
            self.check_letter(Permission::Immutability)?;
        }
        Ok(Immutability { policy, legal_hold })
    }

    /// The immutability policy of a request.
    pub(super) fn policy_sent(&self) -> Result<Option<ImmutabilityPolicy>, Refusal> {
        const UNTIL: &str = "x-ms-immutability-policy-until-date";
        const MODE: &str = "x-ms-immutability-policy-mode";
        let Some(text) = self.header(UNTIL)? else { return Ok(None) };
        let until =
            parse_rfc1123(text).ok_or_else(|| Refusal::header(UNTIL, text, "it is not a date"))?;
        let mode = match self.header(MODE)? {
            None => PolicyMode::Unlocked,
            Some(text) => text
                .parse()
                .map_err(|()| Refusal::header(MODE, text, "it must be Unlocked or Locked"))?,
        };
        Ok(Some(ImmutabilityPolicy { until, mode }))
    }
}

/// The refusal of tags.
pub(super) fn bad_tags(error: &TagError) -> Refusal {
    let code = match error {
        TagError::TooMany => "TagsTooLarge",
        TagError::Invalid | TagError::Repeated => "InvalidTag",
    };
    Refusal::bad(code, error.to_string())
}

/// The MD5 that a header says.
pub(super) fn md5_of(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// An MD5 as headers have it.
pub(super) fn md5_text(md5: impl AsRef<[u8]>) -> String {
    STANDARD.encode(md5)
}

impl Reply {
    /// `ETag` and Last-Modified of a blob or container.
    #[must_use]
    pub(super) fn etag(self, etag: Etag, modified: Timestamp) -> Self {
        self.header("etag", etag.quoted()).header("last-modified", rfc1123(modified))
    }

    /// The headers of the answer to a write.
    #[must_use]
    pub(super) fn blob_written(self, written: &WrittenBlob) -> Self {
        self.etag(written.etag, written.modified)
            .header("x-ms-request-server-encrypted", "true")
            .maybe("x-ms-version-id", written.version.map(iso))
            .encryption(&written.state.encryption)
    }

    /// The customer's key and the scope.
    #[must_use]
    pub(super) fn encryption(self, encryption: &Encryption) -> Self {
        self.maybe("x-ms-encryption-key-sha256", encryption.key_sha256.as_deref())
            .maybe("x-ms-encryption-scope", encryption.scope.as_deref())
    }

    /// All metadata of a blob or container.
    #[must_use]
    pub(super) fn blob_metadata(mut self, metadata: &BlobMetadata) -> Self {
        for (name, value) in metadata {
            let header = format!("{META}{name}");
            self.set_named(&header, value);
            let upper = name.bytes().any(|byte| byte.is_ascii_uppercase());
            if upper && self.headers.contains_key(&header) {
                self.spelled.push(header);
            }
        }
        self
    }

    /// State, status and duration of a lease.
    #[must_use]
    pub(super) fn lease<K: LeaseKind>(self, lease: &TimedLease<K>, now: Timestamp) -> Self {
        self.header("x-ms-lease-status", lease.status(now))
            .header("x-ms-lease-state", lease.state(now))
            .maybe("x-ms-lease-duration", lease.duration(now))
    }

    /// The last copy to a blob.
    #[must_use]
    pub(super) fn blob_copy(self, copy: Option<&CopyRecord>) -> Self {
        let Some(copy) = copy else { return self };
        self.header("x-ms-copy-id", &copy.id)
            .header("x-ms-copy-source", &copy.source)
            .header("x-ms-copy-status", copy.status)
            .header("x-ms-copy-progress", copy.progress())
            .maybe("x-ms-copy-completion-time", copy.completed.map(rfc1123))
            .maybe("x-ms-copy-status-description", copy.description.as_deref())
    }

    /// The content headers, without the MD5.
    #[must_use]
    pub(super) fn content(self, content: &ContentProperties) -> Self {
        let shown = Some(content.shown_type()).filter(|shown| !shown.is_empty());
        self.maybe("content-type", shown)
            .maybe("content-encoding", content.encoding.as_deref())
            .maybe("content-language", content.language.as_deref())
            .maybe("content-disposition", content.disposition.as_deref())
            .maybe("cache-control", content.cache_control.as_deref())
    }

    /// The headers of the answers to GET and HEAD of a blob.
    #[must_use]
    pub(super) fn blob(self, blob: &Blob, now: Timestamp) -> Self {
        let state = &blob.state;
        let mut reply = self
            .etag(state.etag, state.modified)
            .content(&state.content)
            .header("accept-ranges", "bytes")
            .header("x-ms-blob-type", state.kind.name())
            .header("x-ms-creation-time", rfc1123(state.created))
            .header("x-ms-server-encrypted", "true")
            .encryption(&state.encryption)
            .blob_metadata(&state.metadata)
            .blob_copy(state.copy.as_ref())
            .maybe("x-ms-version-id", state.version.map(iso));
        if blob.is_current {
            reply = reply.lease(&state.lease, now);
            if state.version.is_some() {
                reply.set("x-ms-is-current-version", "true");
            }
        }
        if !state.tags.is_empty() {
            reply.set("x-ms-tag-count", state.tags.len());
        }
        if let Some(policy) = state.immutability.policy {
            reply.set("x-ms-immutability-policy-until-date", rfc1123(policy.until));
            reply.set("x-ms-immutability-policy-mode", policy.mode);
        }
        if let Some(hold) = state.immutability.legal_hold {
            reply.set("x-ms-legal-hold", hold);
        }
        reply.kind(state)
    }

    fn kind(mut self, state: &BlobState) -> Self {
        match state.kind {
            BlobType::Block => {}
            BlobType::Append => {
                self.set("x-ms-blob-committed-block-count", state.blocks);
                if state.sealed {
                    self.set("x-ms-blob-sealed", "true");
                }
            }
            BlobType::Page => self.set("x-ms-blob-sequence-number", state.sequence_number),
        }
        self
    }
}
