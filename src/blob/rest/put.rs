//! Put Blob, of all three types.
//!
//! Decides what each type demands of the request. The rules are asked before the body is received,
//! unless it came together with the head, and in any case by the engine when it is committed.

use hyper::body::Incoming;

use super::BlobCall;
use super::body::ReceivedPart;
use super::headers::md5_text;
use crate::blob::rules::pages::is_length;
use crate::blob::rules::{BlobOperation, BlobType};
use crate::blob::service::{BodyRole, Content};
use crate::http::checksum::crc64_text;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;

/// Longest body of Put Blob.
pub(super) const PUT_MAX: u64 = 5_000 << 20;
const TYPE: &str = "x-ms-blob-type";

impl BlobCall<'_> {
    pub(super) async fn put_blob(self, body: Incoming) -> Answer {
        let mut body = Some(body);
        let kind = self.kind_sent();
        let kind = self.drained(&mut body, kind).await?;
        match kind {
            BlobType::Block => self.put_block_blob(body).await,
            BlobType::Append | BlobType::Page => {
                let created = self.create_empty(kind).await;
                self.drained(&mut body, created).await
            }
        }
    }

    fn kind_sent(&self) -> Result<BlobType, Refusal> {
        let text = self.required(TYPE)?;
        let unknown =
            || Refusal::header(TYPE, text, "it must be BlockBlob, AppendBlob or PageBlob");
        BlobType::from_name(text).ok_or_else(unknown)
    }

    async fn put_block_blob(self, body: Option<Incoming>) -> Answer {
        let whole = (BodyRole::Whole, PUT_MAX);
        let new = || self.new_blob(true);
        let received = self.receive_part(BlobOperation::BlockBlobUpload, body, whole, new).await?;
        let ReceivedPart { engine, at, asked, parameters: mut new, body } = received;
        let (md5, crc) = (body.content.md5(), body.content.crc64());
        let reply = body.form(Reply::created());
        new.content.md5 = md5.map(Vec::from);
        let put =
            engine.put_blob(&self.cx_now(), &at, asked, BlobType::Block, new, body.content).await;
        let written = self.told(put)?;
        Ok(reply
            .blob_written(&written)
            .maybe("content-md5", md5.map(md5_text))
            .header("x-ms-content-crc64", crc64_text(crc)))
    }

    async fn create_empty(&self, kind: BlobType) -> Answer {
        let operation = match kind {
            BlobType::Page => BlobOperation::PageBlobCreate,
            BlobType::Append | BlobType::Block => BlobOperation::AppendBlobCreate,
        };
        if self.announced()?.is_some_and(|length| length > 0) {
            let why = "append and page blobs are created without a body";
            return Err(Refusal::header("Content-Length", "", why));
        }
        let (at, asked) = (self.blob_to_change()?, self.asked(operation)?);
        let mut new = self.new_blob(false)?;
        if kind == BlobType::Page {
            const LENGTH: &str = "x-ms-blob-content-length";
            let text = self.required(LENGTH)?;
            let length = text.parse().ok().filter(|length| is_length(*length));
            let why = "it must be a multiple of 512, at most 8 TiB";
            new.page_length = length.ok_or_else(|| Refusal::header(LENGTH, text, why))?;
            new.sequence_number = self.sequence_number()?.unwrap_or(0);
        }
        let none = Content::default();
        let put = self.engine()?.put_blob(self.cx(), &at, asked, kind, new, none).await;
        Ok(Reply::created().blob_written(&self.told(put)?))
    }
}
