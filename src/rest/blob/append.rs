//! Append Block and Append Blob Seal.

use hyper::body::Incoming;

use super::BlobCall;
use super::body::not_empty;
use crate::core::blob::BlobOperation;
use crate::core::blob::append::{APPEND_MAX, AppendConditions};
use crate::engine::blob::Appended;
use crate::rest::http::reply::Reply;
use crate::rest::refusal::Refusal;
use crate::rest::service::Answer;

impl BlobCall<'_> {
    pub(super) fn append_conditions(&self) -> Result<AppendConditions, Refusal> {
        let number = |name: &str| self.parsed(name, "it must be a number");
        Ok(AppendConditions {
            position: number("x-ms-blob-condition-appendpos")?,
            max_size: number("x-ms-blob-condition-maxsize")?,
        })
    }

    pub(super) async fn append_block(self, body: Incoming) -> Answer {
        let operation = BlobOperation::AppendBlobAppendBlock;
        let mut body = Some(body);
        let prepared = async {
            self.check_length(APPEND_MAX)?;
            let (at, asked) = (self.blob_to_change()?, self.asked(operation)?);
            let conditions = self.append_conditions()?;
            if self.announced()? == Some(0) {
                return Err(Refusal::header(
                    "Content-Length",
                    "0",
                    "an append has at least one byte",
                ));
            }
            let engine = self.engine()?;
            let admitted = self.told(engine.check(self.cx(), operation, &at, &asked).await)?;
            Ok((engine, at, asked, conditions, admitted))
        }
        .await;
        let (engine, at, asked, conditions, admitted) = self.drained(&mut body, prepared).await?;
        let body = body.take().ok_or_else(|| Refusal::bad("InvalidInput", "There is no body."))?;
        let received = self.receive(body, Some(admitted), &at, APPEND_MAX).await?;
        let reply = received.checksum(Reply::created());
        let content = not_empty(received.content)?;
        let appended =
            engine.append_block(&self.cx_now(), operation, &at, asked, conditions, content).await;
        Ok(appended_reply(reply, &self.told(appended)?))
    }

    pub(super) async fn seal_blob(self, _: Incoming) -> Answer {
        let (at, asked) = (self.blob_to_change()?, self.asked(BlobOperation::AppendBlobSeal)?);
        let conditions = self.append_conditions()?;
        let sealed = self.engine()?.seal_blob(self.cx(), &at, asked, conditions).await;
        let written = self.told(sealed)?;
        Ok(Reply::ok().etag(written.etag, written.modified).header("x-ms-blob-sealed", "true"))
    }
}

/// The answer to an append.
pub(super) fn appended_reply(reply: Reply, appended: &Appended) -> Reply {
    reply
        .blob_written(&appended.written)
        .header("x-ms-blob-append-offset", appended.offset)
        .header("x-ms-blob-committed-block-count", appended.written.state.blocks)
}
