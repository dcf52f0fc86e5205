//! Get Blob, Get Blob Properties, Get Blob Metadata; recent changes, and what is known of one blob.
//!
//! Decides that record and content come from one transaction: the bytes of a download belong to the
//! `ETag` that is sent with them, whatever is written or deleted meanwhile (S3). Where nothing was
//! written since, that may be a transaction of an earlier read ([`super::cache`]).

use std::ops::Range;
use std::sync::Arc;

use super::access::{AccessConditions, BlobAt};
use super::cache::CachedBlob;
use super::change::{BlobRow, BlobView};
use super::{BlobError, BlobResult, BlobService, ContentReader, DbError};
use crate::blob::rules::{BlobDenial, BlobOperation, BlobState, BlobType, FoundObject};
use crate::blob::store::{BlobTx, StateId, StateKey};
use crate::journal::Change;
use crate::rules::address::ObjectAddress;
use crate::rules::copy_status::CopyStatus;
use crate::rules::{Context, Timestamp};

/// A blob, a snapshot or a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blob {
    pub state: Arc<BlobState>,
    /// Whether it is the blob itself, not a snapshot or an older version.
    pub is_current: bool,
}

/// A blob with a range of its content.
pub struct OpenedBlob {
    pub blob: Blob,
    /// The bytes that `content` has.
    pub range: Range<u64>,
    pub content: BlobContent,
}

/// Bytes of one committed state.
pub enum BlobContent {
    /// Zeros: pages of a copy that is not done.
    Zeros,
    /// All bytes of the state, in memory.
    Whole(Arc<[u8]>),
    /// Bytes that were written.
    Stored(ContentReader),
}

impl Blob {
    fn of(row: BlobRow) -> Self {
        Self { is_current: row.key == StateKey::Current, state: Arc::new(row.record) }
    }
}

impl BlobService {
    /// Reads a blob's properties, metadata or tags; `operation` says which.
    pub fn properties(
        &self,
        cx: &Context,
        operation: BlobOperation,
        at: &BlobAt,
        asked: &AccessConditions,
    ) -> BlobResult<Blob> {
        let version = self.store.version();
        if let Some(cached) = self.cache.get(version, at) {
            return self.admit_cached(cx, operation, at, asked, &cached.state);
        }
        let blob =
            self.look(cx, |look| look.admitted(operation, at, asked)?.admitted().map(Blob::of))?;
        self.cache.put(version, at, CachedBlob { state: Arc::clone(&blob.state), content: None });
        Ok(blob)
    }

    /// Asks the rules about a request on a blob that was read before.
    fn admit_cached(
        &self,
        cx: &Context,
        operation: BlobOperation,
        at: &BlobAt,
        asked: &AccessConditions,
        state: &Arc<BlobState>,
    ) -> BlobResult<Blob> {
        let admitted = self.memory.admit(operation, at, asked, FoundObject::Blob(state), cx.now);
        admitted.map_err(|denial| {
            BlobError::by(denial, state.writer.as_ref(), state.leaser.as_ref()).of_state(state)
        })?;
        Ok(Blob { state: Arc::clone(state), is_current: true })
    }

    /// Opens a blob for reading: all of it, or the bytes of `range` that it has.
    pub async fn open_blob(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        range: Option<Range<u64>>,
    ) -> BlobResult<OpenedBlob> {
        let version = self.store.version();
        if let Some(CachedBlob { state, content: Some(content) }) = self.cache.get(version, at) {
            let blob = self.admit_cached(cx, BlobOperation::BlobDownload, at, &asked, &state)?;
            let range = clipped(range, blob.state.length)?;
            return Ok(OpenedBlob { blob, range, content: BlobContent::Whole(content) });
        }
        let few = |tx: &BlobTx<'_>, id, range| tx.short_reader(id, range);
        if let Some(opened) = self.look(cx, |look| open(look, at, &asked, range.as_ref(), few))? {
            if let BlobContent::Whole(content) = &opened.content {
                let (state, content) = (Arc::clone(&opened.blob.state), Some(Arc::clone(content)));
                self.cache.put(version, at, CachedBlob { state, content });
            }
            return Ok(opened);
        }
        // Many extents, or many files, are read where a thread may block.
        let whole = |tx: &BlobTx<'_>, id, range| tx.range_reader(id, range).map(Some);
        let at = at.clone();
        let read = move |look: &BlobView<'_>| open(look, &at, &asked, range.as_ref(), whole);
        let opened = self.look_elsewhere(cx, read).await?;
        Ok(opened.ok_or_else(|| DbError::Io("a reader was not made".to_owned()))?)
    }
}

/// Opens a blob with a reader that `read` makes; `None` if that makes none.
fn open(
    look: &BlobView<'_>,
    at: &BlobAt,
    asked: &AccessConditions,
    range: Option<&Range<u64>>,
    read: impl Fn(&BlobTx<'_>, StateId, Range<u64>) -> Result<Option<ContentReader>, DbError>,
) -> BlobResult<Option<OpenedBlob>> {
    let place = look.admitted(BlobOperation::BlobDownload, at, asked)?;
    let row = place.admitted()?;
    let range = clipped(range.cloned(), row.record.length)?;
    let content = if is_unwritten(&row.record) {
        BlobContent::Zeros
    } else {
        match read(look.tx, row.id, range.clone())? {
            Some(mut reader) => match reader.take_bytes() {
                Some(bytes) => BlobContent::Whole(bytes.into()),
                None => BlobContent::Stored(reader),
            },
            None => return Ok(None),
        }
    };
    Ok(Some(OpenedBlob { blob: Blob::of(row), range, content }))
}

/// The bytes of a range that a blob of that length has. An empty blob has none of any range.
fn clipped(range: Option<Range<u64>>, length: u64) -> BlobResult<Range<u64>> {
    match range {
        None => Ok(0..length),
        Some(range) if range.start >= length => Err(BlobDenial::InvalidRange(length).into()),
        Some(range) => Ok(range.start..range.end.min(length)),
    }
}

/// A page blob that a copy to it has not filled yet.
fn is_unwritten(state: &BlobState) -> bool {
    let pending = |copy: &crate::blob::rules::copy::CopyRecord| copy.status == CopyStatus::Pending;
    state.kind == BlobType::Page && state.copy.as_ref().is_some_and(pending)
}

/// The state of a blob and its latest changes, for `latchfs why`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobExplanation {
    /// Its record; `None` if there is no such blob.
    pub state: Option<BlobState>,
    /// How many snapshots and older versions it has.
    pub older: usize,
    /// Remembered changes, the latest first.
    pub changes: Vec<Change>,
}

impl BlobService {
    /// Reports the state of a blob and its latest changes. May wait; not for an event loop.
    pub fn why(&self, now: Timestamp, at: &BlobAt) -> BlobResult<BlobExplanation> {
        let (state, older) = self.store.read::<_, BlobError>(|tx| {
            let look = BlobView { tx, memory: &self.memory, now };
            let place = look.place(at)?;
            let states: Vec<BlobRow> = tx.states(place.container, &at.name)?;
            let older =
                |row: &&BlobRow| matches!(row.key, StateKey::Snapshot(_) | StateKey::Version(_));
            Ok((place.blob().map(|row| row.record.clone()), states.iter().filter(older).count()))
        })?;
        let (container, name) = (at.container.clone(), at.name.clone());
        let object = ObjectAddress::Blob { container, name };
        let changes = self.changes(|change| change.object == object);
        Ok(BlobExplanation { state, older, changes })
    }

    /// Remembered changes that `wanted` holds for, the latest first.
    pub fn changes(&self, wanted: impl Fn(&Change) -> bool) -> Vec<Change> {
        self.memory.history.latest(wanted)
    }
}
