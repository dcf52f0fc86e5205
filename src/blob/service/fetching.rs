//! Copies whose bytes are fetched from another server after the answer.
//!
//! Decides that such a copy is pending until its last byte has arrived, and that a copy whose bytes
//! nobody fetches any more has failed: after the end of the server, and in a restored state. REST
//! fetches the bytes.

use serde::{Deserialize, Serialize};

use super::access::{AccessConditions, BlobAt};
use super::change::{BlobChange, BlobView};
use super::copy::{CopiedBlob, CopyBytes, CopyRequest, publish};
use super::{BlobError, BlobResult, BlobService, Content};
use crate::blob::rules::copy::{CopyRecord, HeldCopy, check_abort};
use crate::blob::rules::{BlobDenial, BlobOperation, BlobState, BlobType};
use crate::blob::store::{BlobStore, BlobTx, HeldBlobs, StateKey, WriteTx};
use crate::db::DbService as _;
use crate::db::{DbError, Purpose};
use crate::rules::copy_status::CopyStatus;
use crate::rules::{Context, Timestamp};

/// The name that the copies under way are stored under.
const SETTING: &str = "copies under way";
/// Why a copy has failed that the end of the server cut off.
const STOPPED: &str = "the server was stopped before the copy had ended";
/// Why a copy has failed that was pending in a saved state.
const RESTORED: &str = "the copy had not ended when the state that is restored was saved";

/// A copy under way.
#[derive(Serialize, Deserialize)]
struct Fetch {
    id: String,
    container: String,
    name: String,
}

impl BlobService {
    /// Begins a copy whose bytes are still to be fetched.
    pub async fn begin_copy(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        kind: BlobType,
        total: u64,
        request: CopyRequest,
    ) -> BlobResult<CopiedBlob> {
        let at = at.clone();
        let operation = BlobOperation::BlobStartCopyFromURL;
        self.change(cx, move |change| {
            let place = change.admitted(operation, &at, &asked)?;
            if place.blob().is_some_and(|row| row.record.kind != kind) {
                return Err(BlobDenial::InvalidBlobType.into());
            }
            let mut state = change.new_state(kind, &place)?;
            request.new.apply(&mut state, &place, change.now)?;
            state.metadata = request.metadata.unwrap_or_default();
            state.content = request.properties;
            if kind == BlobType::Page {
                state.length = total;
            }
            let record = CopyRecord::pending(request.id, request.source, total);
            state.copy = Some(record.clone());
            let (container, name) = (at.container.clone(), at.name.clone());
            remember_fetch(change, Fetch { id: record.id.clone(), container, name })?;
            let bytes = CopyBytes::New(Content::default());
            let state = publish(change, operation, &at, &place, state, bytes)?;
            Ok(CopiedBlob { written: state.into(), copy: record })
        })
        .await
    }

    /// Whether a copy still waits for its bytes: it was neither aborted nor deleted.
    pub fn awaits_bytes(&self, cx: &Context, at: &BlobAt, id: &str) -> BlobResult<bool> {
        self.look(cx, |look| Ok(waiting(look, at, id)?.is_some()))
    }

    /// Ends a copy with the bytes that were fetched, or with the reason why not. A copy that was
    /// aborted or deleted meanwhile is left alone.
    pub async fn end_copy(
        &self,
        cx: &Context,
        at: &BlobAt,
        id: String,
        outcome: Result<Content, String>,
    ) -> BlobResult<()> {
        let at = at.clone();
        // A failure is noted on a full disk too: else the copy stays pending and keeps writers
        // away.
        match outcome {
            Ok(content) => self.change(cx, move |tx| end(tx, &at, &id, Ok(content))).await,
            Err(why) => self.delete(cx, move |tx| end(tx, &at, &id, Err(why))).await,
        }
    }
}

/// The destination of a copy that still waits for its bytes.
fn waiting(
    look: &BlobView<'_>,
    at: &BlobAt,
    id: &str,
) -> BlobResult<Option<(crate::blob::store::ContainerId, super::change::BlobRow)>> {
    let place = match look.place(at) {
        Err(error) if error.denial() == Some(&BlobDenial::ContainerNotFound) => return Ok(None),
        place => place?,
    };
    let waits = |row: &super::change::BlobRow| {
        let copy = row.record.copy.as_ref();
        check_abort(copy, id).is_ok() && copy.is_some_and(|copy| copy.held.is_none())
    };
    let container = place.container;
    Ok(place.row.filter(waits).map(|row| (container, row)))
}

fn end(
    change: &BlobChange<'_>,
    at: &BlobAt,
    id: &str,
    outcome: Result<Content, String>,
) -> BlobResult<()> {
    forget_fetch(change, id)?;
    let Some((container, mut row)) = waiting(change, at, id)? else { return Ok(()) };
    let etag = change.etag()?;
    let state = &mut row.record;
    let Some(copy) = &mut state.copy else { return Ok(()) };
    match outcome {
        Ok(content) => {
            copy.total = content.length();
            let delay = change.memory.options.copy_delay;
            if delay.is_zero() {
                copy.finish(change.now);
                state.length = content.length();
                state.touch(etag, change.now);
            } else {
                let due = change.now.after(delay);
                copy.held = Some(HeldCopy { due, etag, blocks: state.blocks });
            }
            let key = StateKey::Current;
            let id = change.tx.put(container, &at.name, key, &row.record, content)?;
            Ok(change.tx.set_tags(id, row.record.tags.iter())?)
        }
        Err(why) => {
            copy.fail(why, change.now);
            // A page blob showed the length of its source; it has no bytes of it.
            state.length = 0;
            state.touch(etag, change.now);
            Ok(change.tx.update(row.id, &row.record)?)
        }
    }
}

fn fetches(tx: &BlobTx<'_>) -> BlobResult<Vec<Fetch>> {
    let Some(text) = tx.setting(SETTING)? else { return Ok(Vec::new()) };
    let read = serde_json::from_str(&text);
    read.map_err(|error| DbError::damaged(format!("the copies under way: {error}")).into())
}

fn keep_fetches(tx: &WriteTx<'_>, fetches: &[Fetch]) -> BlobResult<()> {
    let text = serde_json::to_string(fetches).map_err(|error| DbError::Io(error.to_string()))?;
    let text = Some(text).filter(|_| !fetches.is_empty());
    Ok(tx.set_setting(SETTING, text.as_deref())?)
}

fn remember_fetch(change: &BlobChange<'_>, fetch: Fetch) -> BlobResult<()> {
    let mut list = fetches(change.tx)?;
    list.push(fetch);
    keep_fetches(change.tx, &list)
}

/// Forgets a copy that has ended, if it was one whose bytes are fetched.
pub(super) fn forget_fetch(change: &BlobChange<'_>, id: &str) -> BlobResult<()> {
    let mut list = fetches(change.tx)?;
    let before = list.len();
    list.retain(|fetch| fetch.id != id);
    if list.len() == before { Ok(()) } else { keep_fetches(change.tx, &list) }
}

/// Fails the copies that the end of an earlier server cut off.
pub(super) fn fail_cut_off(store: &BlobStore, now: Timestamp) -> BlobResult<()> {
    if store.read::<_, BlobError>(|tx| Ok(fetches(tx)?.is_empty()))? {
        return Ok(());
    }
    // On a full disk too: else the service does not open, and nothing can be deleted.
    store.write_for(Purpose::Delete, move |tx: &WriteTx<'_>| fail_all(tx, STOPPED, now))
}

/// Fails the copies of blobs that are being restored.
pub(super) fn fail_restored(held: &HeldBlobs<'_>, now: Timestamp) -> BlobResult<()> {
    held.write(|tx| fail_all(tx, RESTORED, now))
}

fn fail_all(tx: &WriteTx<'_>, why: &str, now: Timestamp) -> BlobResult<()> {
    for fetch in fetches(tx)? {
        let container = tx.container::<crate::blob::rules::ContainerState>(&fetch.container)?;
        let Some(container) = container else { continue };
        let found = tx.state::<BlobState>(container.id, &fetch.name, StateKey::Current)?;
        let Some(mut row) = found else { continue };
        let pending = |copy: &&mut CopyRecord| {
            copy.id == fetch.id && copy.status == CopyStatus::Pending && copy.held.is_none()
        };
        if let Some(copy) = row.record.copy.as_mut().filter(pending) {
            copy.fail(why.to_owned(), now);
            row.record.length = 0;
            tx.update(row.id, &row.record)?;
        }
    }
    keep_fetches(tx, &[])
}
