//! Put Block, Put Block List, Get Block List.
//!
//! Decides that a first block makes an uncommitted blob, which has a lease but no content and no
//! `ETag`, that the blocks of a list are committed with the key they were put with, and that a long
//! list is prepared before the transaction that commits it.

use std::sync::Arc;

use super::access::{AccessConditions, BlobAt};
use super::change::{BlobChange, ResolvedBlob, SetAside};
use super::{BlobError, BlobResult, BlobService, Content, NewBlob, WrittenBlob};
use crate::blob::rules::blocks::{BlockId, COMMITTED_MAX, ListedBlock, check_new_block};
use crate::blob::rules::{BlobDenial, BlobOperation, BlobState, BlobType, Encryption};
use crate::blob::store::{BlobTx, BlockChoice, BlockList, ContainerId, STAGE_ABOVE, StateKey};
use crate::db::DbService as _;
use crate::db::service::on_blocking_thread;
use crate::rules::{Context, Etag};

/// How often a long list is prepared again because its blocks changed; then it is committed in one
/// long transaction.
const ATTEMPTS_MAX: usize = 3;

/// The answer of Get Block List.
#[derive(Clone, Debug)]
pub struct BlockLists {
    /// The blob; `None` while it is uncommitted.
    pub blob: Option<BlobState>,
    /// In the order of the blob.
    pub committed: Vec<(BlockId, u64)>,
    /// In the order of their IDs.
    pub uncommitted: Vec<(BlockId, u64)>,
}

/// A Put Block List.
struct Commit {
    at: BlobAt,
    asked: AccessConditions,
    new: NewBlob,
    list: Vec<ListedBlock>,
}

impl BlobService {
    /// Put Block. `operation` is that or Put Block From URL.
    pub async fn put_block(
        &self,
        cx: &Context,
        operation: BlobOperation,
        at: &BlobAt,
        asked: AccessConditions,
        id: BlockId,
        content: Content,
    ) -> BlobResult<()> {
        let at = at.clone();
        self.change(cx, move |change| {
            let place = change.admitted(operation, &at, &asked)?;
            let first = check_block(change, place.container, &at.name, &id)?;
            let staged = match &place.row {
                Some(row) if !first => row.record.staged.clone(),
                _ => Encryption { key_sha256: asked.key.clone(), scope: None },
            };
            staged.check_key(asked.key.as_deref())?;
            let bytes = id.as_bytes();
            change.tx.put_block(place.container, &at.name, bytes, content, change.now)?;
            keep_uncommitted(change, &at.name, place, staged)
        })
        .await
    }

    pub async fn put_block_list(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        new: NewBlob,
        list: Vec<ListedBlock>,
    ) -> BlobResult<WrittenBlob> {
        if list.len() > COMMITTED_MAX {
            return Err(BlobDenial::BlockListTooLong.into());
        }
        let commit = Arc::new(Commit { at: at.clone(), asked, new, list });
        let whole = {
            let commit = Arc::clone(&commit);
            move |change: &BlobChange<'_>| {
                let place = change.admitted(LIST, &commit.at, &commit.asked)?;
                let list = commit.resolve(change.tx, &place)?;
                commit.publish(change, &place, list)
            }
        };
        if commit.list.len() > STAGE_ABOVE {
            for _ in 0..ATTEMPTS_MAX {
                match self.commit_staged(cx, &commit).await {
                    Err(BlobError::Stale) => {}
                    other => return other,
                }
            }
        }
        self.change(cx, whole).await
    }

    /// Finds the blocks in a read, writes the list in slices, and commits it in a short
    /// transaction.
    async fn commit_staged(&self, cx: &Context, commit: &Arc<Commit>) -> BlobResult<WrittenBlob> {
        let found = Arc::clone(commit);
        let list = self
            .look_elsewhere(cx, move |look| {
                let place = look.admitted(LIST, &found.at, &found.asked)?;
                found.resolve(look.tx, &place)
            })
            .await?;
        let store = Arc::clone(&self.store);
        let staged = on_blocking_thread(move || store.stage(list)).await?;
        let commit = Arc::clone(commit);
        let publish = move |change: &BlobChange<'_>| {
            let place = change.admitted(LIST, &commit.at, &commit.asked)?;
            commit.publish(change, &place, staged)
        };
        self.change(cx, publish).await
    }

    pub fn block_lists(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: &AccessConditions,
    ) -> BlobResult<BlockLists> {
        self.look(cx, |look| {
            let place = look.admitted(BlobOperation::BlockBlobGetBlockList, at, asked)?;
            let uncommitted = look.tx.uncommitted_blocks(place.container, &at.name)?;
            let committed = match place.blob() {
                Some(row) => look.tx.committed_blocks(row.id)?,
                None => Vec::new(),
            };
            let shown = |blocks: Vec<(Vec<u8>, u64)>| {
                let pair = |(id, length)| (BlockId::from_bytes(id), length);
                blocks.into_iter().map(pair).collect()
            };
            let blob = place.blob().map(|row| row.record.clone());
            Ok(BlockLists { blob, committed: shown(committed), uncommitted: shown(uncommitted) })
        })
    }
}

const LIST: BlobOperation = BlobOperation::BlockBlobCommitBlockList;

impl Commit {
    /// Finds the listed blocks.
    fn resolve(&self, tx: &BlobTx<'_>, place: &ResolvedBlob) -> BlobResult<BlockList> {
        let choices: Vec<_> = self
            .list
            .iter()
            .map(|listed| BlockChoice { id: listed.id.as_bytes(), search: listed.search })
            .collect();
        let current = place.blob().map(|row| row.id);
        let found = tx.resolve_blocks(place.container, &self.at.name, current, &choices)?;
        Ok(found.ok_or(BlobDenial::InvalidBlockList)?)
    }

    /// Refuses a list without the customer's key of its blocks.
    fn check_key(&self, place: &ResolvedBlob, list: &BlockList) -> BlobResult<()> {
        let Some(row) = &place.row else { return Ok(()) };
        let key = self.asked.key.as_deref();
        if list.has_uncommitted() {
            row.record.staged.check_key(key)?;
        }
        if list.has_committed() {
            row.record.encryption.check_key(key)?;
        }
        Ok(())
    }

    /// Makes the blob of the blocks that were found.
    fn publish(
        &self,
        change: &BlobChange<'_>,
        place: &ResolvedBlob,
        list: BlockList,
    ) -> BlobResult<WrittenBlob> {
        self.check_key(place, &list)?;
        let mut state = change.new_state(BlobType::Block, place)?;
        self.new.clone().apply(&mut state, place, change.now)?;
        state.blocks = u32::try_from(list.blocks()).unwrap_or(u32::MAX);
        state.length = list.length();
        // The blob stays in place until its blocks are part of the new one.
        let state = change.publish(LIST, &self.at, place, state, SetAside::Copied, |state| {
            let made = change.tx.commit_blocks(place.container, &self.at.name, state, list)?;
            made.ok_or(BlobError::Stale)
        })?;
        Ok(state.into())
    }
}

/// Refuses an ID of another length than the others, and one block too many. True if there is no
/// other block.
fn check_block(
    change: &BlobChange<'_>,
    container: ContainerId,
    name: &str,
    id: &BlockId,
) -> BlobResult<bool> {
    let (count, length) = change.tx.block_summary(container, name)?;
    let replaces = count > 0 && change.tx.has_block(container, name, id.as_bytes())?;
    // A block that replaces the only one leaves none of another length.
    let others = length.filter(|_| count > usize::from(replaces));
    check_new_block(id, others, count, replaces)?;
    Ok(others.is_none())
}

/// After a block was put: a lease that is over is forgotten, and a name without a blob becomes an
/// uncommitted blob.
fn keep_uncommitted(
    change: &BlobChange<'_>,
    name: &str,
    place: ResolvedBlob,
    staged: Encryption,
) -> BlobResult<()> {
    let Some(mut row) = place.row else {
        // A deleted blob of that name stays as it is: it can come back until a list is committed.
        let none = BlobState::new(BlobType::Block, Etag::default(), change.now);
        let none = BlobState { staged, ..none };
        let key = StateKey::Uncommitted;
        change.tx.put(place.container, name, key, &none, Content::default())?;
        return Ok(());
    };
    let before = row.record.lease;
    row.record.lease.after_write(change.now);
    if row.record.lease != before || row.record.staged != staged {
        row.record.staged = staged;
        change.tx.update(row.id, &row.record)?;
    }
    Ok(())
}
