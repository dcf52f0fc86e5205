//! Append Block and Append Blob Seal.

use hyper::body::Incoming;

use super::BlobCall;
use super::body::{ReceivedPart, not_empty};
use crate::blob::rules::BlobOperation;
use crate::blob::rules::append::{APPEND_MAX, AppendConditions};
use crate::blob::service::{Appended, BodyRole};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;

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
        let parameters = || {
            let conditions = self.append_conditions()?;
            self.check_announced("an append has at least one byte")?;
            Ok(conditions)
        };
        let part = self
            .receive_part(operation, Some(body), (BodyRole::Part, APPEND_MAX), parameters)
            .await?;
        let ReceivedPart { engine, at, asked, parameters: conditions, body } = part;
        let reply = body.checksum(Reply::created());
        let content = not_empty(body.content)?;
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
