//! Get Blob, Get Blob Properties, Get Blob Metadata, Get Blob Tags.
//!
//! Decides the statuses and headers of ranged reads. Record and bytes come from one transaction of
//! the engine.

use std::ops::Range;

use hyper::StatusCode;
use hyper::body::Incoming;

use super::BlobCall;
use super::download::BlobDownload;
use super::headers::md5_text;
use crate::blob::rules::tags::Tags;
use crate::blob::rules::{BlobOperation, BlobState, BlobType};
use crate::http::checksum::{
    STRUCTURED, STRUCTURED_CRC64, STRUCTURED_LENGTH, crc64, crc64_text, is_structured, md5,
};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::{Reply, ReplyBody};
use crate::http::request::byte_range;
use crate::http::xml::Xml;
use crate::rules::time::rfc1123;

/// Longest range whose checksum is computed.
const RANGE_SUM_MAX: u64 = 4 << 20;
const RANGE_MD5: &str = "x-ms-range-get-content-md5";
const RANGE_CRC: &str = "x-ms-range-get-content-crc64";

impl BlobCall<'_> {
    pub(super) async fn get_blob(self, _: Incoming) -> Answer {
        let at = self.blob_at()?;
        let asked = self.asked(BlobOperation::BlobDownload)?;
        let range = self.range_asked()?;
        let (sum_md5, sum_crc) = (self.flag(RANGE_MD5)?, self.flag(RANGE_CRC)?);
        if sum_md5 && sum_crc {
            let message = "The MD5 and CRC64 of a range cannot both be requested.";
            return Err(Refusal::bad("BothCrc64AndMd5RangeHeaderPresent", message));
        }
        let name = if sum_md5 { RANGE_MD5 } else { RANGE_CRC };
        let too_long = || Refusal::header(name, "true", "it needs a range of at most 4 MiB");
        if (sum_md5 || sum_crc) && range.is_none() {
            return Err(too_long());
        }
        let structured = is_structured(&self)?;
        let opened = self.engine()?.open_blob(self.cx(), &at, asked, range.clone()).await;
        let opened = self.told(opened)?;
        let (state, sent) = (&opened.blob.state, opened.range.clone());
        let length = sent.end - sent.start;
        let mut reply = if range.is_some() {
            let shown = format!("bytes {}-{}/{}", sent.start, sent.end - 1, state.length);
            Reply::new(StatusCode::PARTIAL_CONTENT)
                .header("content-range", shown)
                .maybe("x-ms-blob-content-md5", state.content.md5.as_ref().map(md5_text))
        } else {
            Reply::ok().maybe("content-md5", state.content.md5.as_ref().map(md5_text))
        };
        reply = reply.blob(&opened.blob, self.now);
        let download = BlobDownload { content: opened.content, range: sent };
        if sum_md5 || sum_crc {
            if length > RANGE_SUM_MAX {
                return Err(too_long());
            }
            let bytes = download.whole().await.map_err(|error| {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                Refusal::new(status, "InternalError", error.to_string())
            })?;
            if sum_md5 {
                reply.set("content-md5", md5(&bytes));
            } else {
                reply.set("x-ms-content-crc64", crc64_text(crc64(&bytes)));
            }
            reply.body = ReplyBody::Bytes(bytes);
        } else if structured {
            reply.set(STRUCTURED, STRUCTURED_CRC64);
            reply.set(STRUCTURED_LENGTH, length);
            reply.body = download.structured();
        } else {
            reply.body = download.body();
        }
        Ok(reply)
    }

    /// The range of a download. Shapes other than `bytes=FIRST-LAST` and `bytes=FIRST-` are
    /// ignored, as RFC 9110 allows.
    fn range_asked(&self) -> Result<Option<Range<u64>>, Refusal> {
        for name in ["x-ms-range", "range"] {
            if let Some(text) = self.header(name)? {
                return Ok(byte_range(text));
            }
        }
        Ok(None)
    }

    pub(super) fn blob_properties(self) -> Answer {
        let blob = self.look(BlobOperation::BlobGetProperties)?;
        let state = &blob.state;
        let mut reply = Reply::ok()
            .blob(&blob, self.now)
            .maybe("content-md5", state.content.md5.as_ref().map(md5_text));
        if state.kind == BlobType::Block {
            reply = self.tier_shown(reply, state);
        }
        reply.body = ReplyBody::HeadOf(state.length);
        Ok(reply)
    }

    fn tier_shown(&self, reply: Reply, state: &BlobState) -> Reply {
        let mut reply = reply.header("x-ms-access-tier", state.tier.tier(self.now));
        if state.tier.is_inferred() {
            reply.set("x-ms-access-tier-inferred", "true");
        }
        if let Some(to) = state.tier.pending(self.now) {
            let to = to.to_string().to_ascii_lowercase();
            reply.set("x-ms-archive-status", format!("rehydrate-pending-to-{to}"));
        }
        reply.maybe("x-ms-access-tier-change-time", state.tier.changed.map(rfc1123))
    }

    pub(super) fn blob_metadata(self) -> Answer {
        let blob = self.look(BlobOperation::BlobGetMetadata)?;
        let state = &blob.state;
        Ok(Reply::ok()
            .etag(state.etag, state.modified)
            .encryption(&state.encryption)
            .blob_metadata(&state.metadata))
    }

    pub(super) fn blob_tags(self) -> Answer {
        let blob = self.look(BlobOperation::BlobGetTags)?;
        let mut xml = Xml::default();
        xml.open("Tags");
        write_tags(&mut xml, &blob.state.tags);
        xml.close("Tags");
        Ok(Reply::ok().xml(xml))
    }

    fn look(&self, operation: BlobOperation) -> Result<crate::blob::service::Blob, Refusal> {
        let (at, asked) = (self.blob_at()?, self.asked(operation)?);
        let found = self.engine()?.properties(self.cx(), operation, &at, &asked);
        self.told(found)
    }
}

/// The tags of a blob.
pub(super) fn write_tags(xml: &mut Xml, tags: &Tags) {
    xml.open("TagSet");
    for (key, value) in tags.iter() {
        xml.open("Tag");
        xml.text("Key", key);
        xml.text("Value", value);
        xml.close("Tag");
    }
    xml.close("TagSet");
}
