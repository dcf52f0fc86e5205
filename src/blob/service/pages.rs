//! Put Page, Clear Page, Get Page Ranges and their differences; resizing and sequence numbers.
//!
//! Ranges and sequence numbers are decided in [`crate::blob::rules::pages`], inside the transaction
//! that writes.

use std::ops::Range;

use super::access::{AccessConditions, BlobAt, Selector};
use super::change::{BlobRow, BlobView};
use super::error::BlobError;
use super::{BlobResult, BlobService, Content, WrittenBlob};
use crate::blob::rules::pages::{
    self, ListedRange, PageRange, SequenceAction, SequenceConditions, WrittenPages,
    page_difference, page_list,
};
use crate::blob::rules::{BlobDenial, BlobOperation, BlobState, ContentProperties};
use crate::blob::store::{StateId, StateKey};
use crate::db::DbService as _;
use crate::rules::{Context, Timestamp};

/// A Put Page: its range and what is done to it.
#[derive(Clone)]
pub struct PutPages {
    /// The first byte of the range.
    pub first: u64,
    /// The last byte of the range.
    pub last: u64,
    /// The change of the range.
    pub change: PageChange,
    /// Conditions on the sequence number.
    pub conditions: SequenceConditions,
}

/// The change that Put Page makes to its range.
#[derive(Clone)]
pub enum PageChange {
    /// Writes these bytes, as long as the range.
    Update(Content),
    Clear,
}

/// The answer of Get Page Ranges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paged {
    pub state: BlobState,
    /// Written ranges in order; in a difference, cleared ones among them.
    pub ranges: Vec<ListedRange>,
    /// Where the next page of the list begins.
    pub next: Option<u64>,
}

/// The arguments of Get Page Ranges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageQuery {
    /// The bytes asked for; `None` for all.
    pub range: Option<Range<u64>>,
    /// Where to go on.
    pub from: Option<u64>,
    /// Most ranges of an answer.
    pub max: usize,
}

impl PageQuery {
    /// The pages that the range touches within a blob of that length. The range must begin there.
    fn window(&self, length: u64) -> BlobResult<Range<u64>> {
        let Range { start, end } = self.range.clone().unwrap_or(0..length);
        if self.range.is_some() && start >= length {
            return Err(BlobDenial::InvalidRange(length).into());
        }
        let start = self.from.unwrap_or(start).max(start) / pages::PAGE * pages::PAGE;
        let end = end.min(length).div_ceil(pages::PAGE) * pages::PAGE;
        Ok(start.min(end)..end)
    }

    /// The first ranges of a list, and where to go on.
    fn page(&self, state: BlobState, mut ranges: Vec<ListedRange>) -> Paged {
        let next = ranges.get(self.max).map(|listed| listed.range.start);
        ranges.truncate(self.max);
        Paged { state, ranges, next }
    }
}

fn written(look: &BlobView<'_>, id: StateId, window: Range<u64>) -> BlobResult<Vec<WrittenPages>> {
    let found = look.tx.written(id, window)?;
    let pages = found.into_iter().map(|one| {
        let range = PageRange { start: one.start, end: one.end };
        WrittenPages { range, write: one.write, cleared: one.cleared }
    });
    Ok(pages.collect())
}

impl BlobService {
    /// Put Page. `operation` is that, its clearing form, or Put Page From URL.
    pub async fn put_pages(
        &self,
        cx: &Context,
        operation: BlobOperation,
        at: &BlobAt,
        asked: AccessConditions,
        put: PutPages,
    ) -> BlobResult<WrittenBlob> {
        let at = at.clone();
        self.change(cx, move |change| {
            let row = change.admitted(operation, &at, &asked)?.admitted()?;
            let denied = put.conditions.check(row.record.sequence_number);
            denied.map_err(|denial| BlobError::by(denial, row.record.writer.as_ref(), None))?;
            let range = PageRange::within(put.first, put.last, row.record.length)?;
            let etag = change.etag()?;
            match put.change {
                PageChange::Update(content) if content.length() != range.len() => {
                    return Err(BlobDenial::InvalidPageRange.into());
                }
                PageChange::Update(content) => {
                    change.tx.write_pages(row.id, range.start, content, etag.number())?;
                }
                PageChange::Clear => {
                    change.tx.clear_pages(row.id, range.start..range.end, etag.number())?;
                }
            }
            let state = change.update(operation, &at, &row, |state| {
                state.touch(etag, change.now);
                state.content.md5 = None;
                Ok(())
            })?;
            Ok(state.into())
        })
        .await
    }

    /// Get Page Ranges, within a range of bytes.
    pub fn page_ranges(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: &AccessConditions,
        query: &PageQuery,
    ) -> BlobResult<Paged> {
        self.look(cx, |look| {
            let operation = BlobOperation::PageBlobGetPageRanges;
            let row = look.admitted(operation, at, asked)?.admitted()?;
            let written = written(look, row.id, query.window(row.record.length)?)?;
            Ok(query.page(row.record, page_list(&written)))
        })
    }

    /// Get Page Ranges with `prevsnapshot`: what was written and cleared since that snapshot.
    pub fn page_difference(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: &AccessConditions,
        previous: Timestamp,
        query: &PageQuery,
    ) -> BlobResult<Paged> {
        self.look(cx, |look| {
            let operation = BlobOperation::PageBlobGetPageRangesDiff;
            let place = look.admitted(operation, at, asked)?;
            let container = place.container;
            let row = place.admitted()?;
            if matches!(at.selector, Selector::Snapshot(moment) if moment < previous) {
                return Err(BlobDenial::PreviousSnapshotCannotBeNewer.into());
            }
            let before = look.tx.state(container, &at.name, StateKey::Snapshot(previous))?;
            let before: BlobRow = before
                .filter(|row: &BlobRow| row.retained.is_none())
                .ok_or(BlobDenial::PreviousSnapshotNotFound)?;
            if before.record.creation != row.record.creation {
                return Err(BlobDenial::BlobOverwritten.into());
            }
            let window = query.window(row.record.length)?;
            let then = written(look, before.id, window.clone())?;
            let now = written(look, row.id, window)?;
            Ok(query.page(row.record, page_difference(&then, &now)))
        })
    }

    /// Set Blob Properties that resizes a page blob or changes its sequence number; `content` is
    /// `None` where no property of the content was sent.
    pub async fn set_page_properties(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        content: Option<ContentProperties>,
        length: Option<u64>,
        sequence: Option<SequenceAction>,
    ) -> BlobResult<WrittenBlob> {
        let operation = match length {
            Some(_) => BlobOperation::PageBlobResize,
            None => BlobOperation::PageBlobUpdateSequenceNumber,
        };
        if length.is_some_and(|length| !pages::is_length(length)) {
            return Err(BlobDenial::InvalidPageRange.into());
        }
        let at = at.clone();
        self.change(cx, move |change| {
            let row = change.admitted(operation, &at, &asked)?.admitted()?;
            let number = row.record.sequence_number;
            let number = sequence.map_or(Ok(number), |action| action.apply(number))?;
            let etag = change.etag()?;
            if let Some(length) = length {
                change.tx.resize(row.id, length)?;
            }
            let state = change.update(operation, &at, &row, |state| {
                state.touch(etag, change.now);
                state.copy = None;
                state.length = length.unwrap_or(state.length);
                state.sequence_number = number;
                if let Some(content) = content {
                    state.content = content;
                }
                Ok(())
            })?;
            Ok(state.into())
        })
        .await
    }
}
