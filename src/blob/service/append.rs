//! Append Block and Seal.
//!
//! Positions, sizes and the seal are decided in [`crate::blob::rules::append`], inside the
//! transaction that appends: two appenders at one position have one winner.

use super::access::{AccessConditions, BlobAt};
use super::error::BlobError;
use super::{BlobResult, BlobService, Content, WrittenBlob};
use crate::blob::rules::append::{AppendConditions, Appendable};
use crate::blob::rules::{BlobOperation, BlobState};
use crate::db::DbService as _;
use crate::rules::Context;

/// The answer of Append Block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Appended {
    /// Where the block begins.
    pub offset: u64,
    /// The blob as it is now.
    pub written: WrittenBlob,
}

impl BlobService {
    /// Append Block. `operation` is that or Append Block From URL.
    pub async fn append_block(
        &self,
        cx: &Context,
        operation: BlobOperation,
        at: &BlobAt,
        asked: AccessConditions,
        conditions: AppendConditions,
        content: Content,
    ) -> BlobResult<Appended> {
        let at = at.clone();
        self.change(cx, move |change| {
            let row = change.admitted(operation, &at, &asked)?.admitted()?;
            let added = content.length();
            let denied = appendable(&row.record).check_append(added, conditions);
            denied.map_err(|denial| BlobError::by(denial, row.record.writer.as_ref(), None))?;
            let etag = change.etag()?;
            let offset = change.tx.append(row.id, content)?;
            let state = change.update(operation, &at, &row, |state| {
                state.touch(etag, change.now);
                state.length += added;
                state.blocks += 1;
                state.copy = None;
                // The MD5 was that of the shorter blob.
                state.content.md5 = None;
                Ok(())
            })?;
            Ok(Appended { offset, written: state.into() })
        })
        .await
    }

    /// Append Blob Seal. Sealing again changes nothing but the `ETag`.
    pub async fn seal_blob(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        conditions: AppendConditions,
    ) -> BlobResult<WrittenBlob> {
        let at = at.clone();
        let operation = BlobOperation::AppendBlobSeal;
        self.change(cx, move |change| {
            let row = change.admitted(operation, &at, &asked)?.admitted()?;
            let denied = appendable(&row.record).check_seal(conditions);
            denied.map_err(|denial| BlobError::by(denial, row.record.writer.as_ref(), None))?;
            let etag = change.etag()?;
            let state = change.update(operation, &at, &row, |state| {
                state.touch(etag, change.now);
                state.sealed = true;
                Ok(())
            })?;
            Ok(state.into())
        })
        .await
    }
}

fn appendable(state: &BlobState) -> Appendable {
    let blocks = usize::try_from(state.blocks).unwrap_or(usize::MAX);
    Appendable { length: state.length, blocks, sealed: state.sealed }
}
