//! Put Block, Put Block List, Get Block List.
//!
//! Decides that a first block makes an uncommitted blob, which has a lease but no content and no
//! `ETag`, and that the blocks of a list are committed with the key they were put with.

use super::access::{AccessConditions, BlobAt};
use super::change::{BlobChange, ResolvedBlob, SetAside};
use super::{BlobResult, BlobService, Content, NewBlob, WrittenBlob};
use crate::blob::rules::blocks::{BlockId, COMMITTED_MAX, ListedBlock, check_new_block};
use crate::blob::rules::{BlobDenial, BlobOperation, BlobState, BlobType, Encryption};
use crate::blob::store::{BlockList, ContainerId, StateKey};
use crate::db::DbService as _;
use crate::rules::{Context, Etag};

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
        let at = at.clone();
        let operation = BlobOperation::BlockBlobCommitBlockList;
        self.change(cx, move |change| {
            let place = change.admitted(operation, &at, &asked)?;
            let current = place.blob().map(|row| row.id);
            let found = change.tx.resolve_blocks(place.container, &at.name, current, &list)?;
            let found = found.ok_or(BlobDenial::InvalidBlockList)?;
            check_key(&asked, &place, &found)?;
            let mut state = change.new_state(BlobType::Block, &place)?;
            new.apply(&mut state, &place, change.now)?;
            state.blocks = u32::try_from(list.len()).unwrap_or(u32::MAX);
            state.length = found.length;
            // The blob stays in place until its blocks are part of the new one.
            let state =
                change.publish(operation, &at, &place, state, SetAside::Copied, |state| {
                    Ok(change.tx.commit_blocks(place.container, &at.name, state, &found)?)
                })?;
            Ok(state.into())
        })
        .await
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

/// Refuses a list without the customer's key of its blocks.
fn check_key(asked: &AccessConditions, place: &ResolvedBlob, list: &BlockList) -> BlobResult<()> {
    let Some(row) = &place.row else { return Ok(()) };
    let key = asked.key.as_deref();
    if list.uncommitted {
        row.record.staged.check_key(key)?;
    }
    if list.committed {
        row.record.encryption.check_key(key)?;
    }
    Ok(())
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
