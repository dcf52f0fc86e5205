//! Snapshots, deletion and its undoing.
//!
//! Decides what becomes of the states of a blob. Which states a request removes is decided in
//! [`crate::blob::rules::deletion`].

use super::access::{AccessConditions, BlobAt, Selector};
use super::change::{BlobChange, BlobRow, ResolvedBlob, old_state, version_of};
use super::{BlobError, BlobResult, BlobService};
use crate::blob::rules::deletion::{DeleteBlobSnapshots, DeletionTarget, Removal, plan};
use crate::blob::rules::tier::TierConditions;
use crate::blob::rules::{BlobDenial, BlobMetadata, BlobOperation, BlobState};
use crate::blob::store::{StateKey, StateKind};
use crate::db::DbService as _;
use crate::rules::{Context, Timestamp};

/// The arguments of Delete Blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeleteBlob {
    pub snapshots: Option<DeleteBlobSnapshots>,
    /// `deletetype=permanent`: also what is kept after an earlier deletion.
    pub permanent: bool,
    /// `x-ms-access-tier-if-*`.
    pub tier: TierConditions,
}

/// The answer of Delete Blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeletedBlob {
    pub permanent: bool,
}

impl BlobService {
    /// Snapshot Blob: its moment, and the record of the blob. With `metadata` the snapshot has that
    /// instead of the blob's.
    pub async fn snapshot(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        metadata: BlobMetadata,
    ) -> BlobResult<(Timestamp, BlobState)> {
        let at = at.clone();
        let operation = BlobOperation::BlobCreateSnapshot;
        // The snapshot gets a copy of every row of extents.
        self.change(cx, move |change| {
            let place = change.admitted(operation, &at, &asked)?;
            let container = place.container;
            let mut row = place.admitted()?;
            let etag = change.etag()?;
            let mut snapshot = old_state(&row.record);
            if !metadata.is_empty() {
                snapshot.metadata = metadata;
                snapshot.touch(etag, change.now);
            }
            let key = StateKey::Snapshot(etag.moment());
            change.tx.put_shared(container, &at.name, key, &snapshot, row.id, None)?;
            if change.memory.options.versioning {
                change.keep_version(container, &row)?;
                row.record.version = Some(change.etag()?.moment());
                change.tx.update(row.id, &row.record)?;
            }
            let etags = (Some(row.record.etag), Some(row.record.etag));
            change.writer(operation, &at.container, Some(&at.name), etags);
            Ok((etag.moment(), row.record))
        })
        .await
    }

    pub async fn delete_blob(
        &self,
        cx: &Context,
        at: &BlobAt,
        asked: AccessConditions,
        delete: DeleteBlob,
    ) -> BlobResult<DeletedBlob> {
        let at = at.clone();
        // There may be thousands of snapshots.
        self.delete(cx, move |change| {
            let place = change.place(&at)?;
            // What an earlier deletion left can only be named to remove it for good.
            if place.row.is_none() && delete.permanent {
                return remove_retained(change, &at, &place);
            }
            change.admit(BlobOperation::BlobDelete, &at, &asked, &place)?;
            if let Some(row) = place.blob() {
                let BlobState { tier, created, writer, .. } = &row.record;
                let checked = tier.check(*created, &delete.tier);
                checked.map_err(|denial| BlobError::by(denial, writer.as_ref(), None))?;
            }
            let etags = (place.etag(), None);
            change.writer(BlobOperation::BlobDelete, &at.container, Some(&at.name), etags);
            remove(change, &at, place, delete)
        })
        .await
    }

    /// Undelete Blob: brings back what is kept after deletion. Nothing to bring back is no error.
    pub async fn undelete_blob(&self, cx: &Context, at: &BlobAt) -> BlobResult<()> {
        let at = at.clone();
        self.change(cx, move |change| {
            let container = change.container(&at.container)?.id;
            let states: Vec<BlobRow> = change.tx.states(container, &at.name)?;
            let kept = |row: &&BlobRow| row.retained.is_some_and(|kept| kept.until > change.now);
            let is_base = |row: &&BlobRow| matches!(row.key, StateKey::Deleted(_));
            // The latest of several deleted blobs comes back as the blob; a name that was used
            // again has none (see `BlobChange::bury`).
            let last = states.iter().rev().filter(kept).find(is_base).map(|row| row.id);
            // Blocks that were put since are then blocks of the blob that comes back.
            let uncommitted = states.iter().find(|row| row.key == StateKey::Uncommitted);
            let uncommitted = uncommitted.filter(|_| last.is_some());
            if let Some(row) = uncommitted {
                change.tx.remove(row.id)?;
            }
            for row in states.iter().filter(kept) {
                let key = match row.key {
                    StateKey::Deleted(_) if last == Some(row.id) => StateKey::Current,
                    StateKey::Deleted(moment) => StateKey::Snapshot(moment),
                    key => key,
                };
                let mut record = row.record.clone();
                if let (StateKey::Current, Some(blocks)) = (key, uncommitted) {
                    record.lease = blocks.record.lease;
                    record.leaser.clone_from(&blocks.record.leaser);
                    record.staged.clone_from(&blocks.record.staged);
                }
                change.tx.rekey(row.id, key, &record, None)?;
                if key == StateKey::Current {
                    change.tx.set_tags(row.id, record.tags.iter())?;
                }
            }
            let back = states.iter().find(|row| Some(row.id) == last).map(|row| row.record.etag);
            let current = states.iter().find(|row| row.key == StateKey::Current);
            let before = current.map(|row| row.record.etag);
            let etags = (before, back.or(before));
            change.writer(BlobOperation::BlobUndelete, &at.container, Some(&at.name), etags);
            Ok(())
        })
        .await
    }
}

/// Removes what the request names, once the rules have admitted it.
fn remove(
    change: &BlobChange<'_>,
    at: &BlobAt,
    place: ResolvedBlob,
    delete: DeleteBlob,
) -> BlobResult<DeletedBlob> {
    let row = place.row.ok_or(BlobDenial::BlobNotFound)?;
    let named = match (at.selector, row.key) {
        (Selector::Current, _) => DeletionTarget::Base,
        (Selector::Snapshot(_), _) => DeletionTarget::Snapshot,
        (Selector::Version(_), StateKey::Current) => DeletionTarget::CurrentVersion,
        (Selector::Version(_), _) => DeletionTarget::OldVersion,
    };
    let has_snapshots = change.tx.has_states(place.container, &at.name, StateKind::Snapshot)?;
    let removal = plan(named, delete.snapshots, has_snapshots)?;
    if matches!(removal, Removal::Snapshots | Removal::All) {
        let kind = StateKind::Snapshot;
        let snapshots: Vec<BlobRow> = change.tx.states_of(place.container, &at.name, kind)?;
        let live = || snapshots.iter().filter(|row| row.retained.is_none());
        for snapshot in live() {
            snapshot.record.immutability.check(change.now)?;
        }
        for snapshot in live() {
            remove_state(change, snapshot)?;
        }
    }
    if matches!(removal, Removal::Named | Removal::All) {
        if named == DeletionTarget::Base {
            change.tx.drop_blocks(place.container, &at.name)?;
        }
        remove_state(change, &row)?;
    }
    Ok(DeletedBlob { permanent: change.retention().is_none() })
}

/// Removes one state: for good, or for a while, or to the versions.
fn remove_state(change: &BlobChange<'_>, row: &BlobRow) -> BlobResult<()> {
    let old = old_state(&row.record);
    match (row.key, change.retention()) {
        (StateKey::Current, _) if change.memory.options.versioning => {
            change.tx.rekey(row.id, StateKey::Version(version_of(&old)), &old, None)?;
        }
        (StateKey::Uncommitted, _) | (_, None) => change.tx.remove(row.id)?,
        (StateKey::Current, kept) => {
            let key = StateKey::Deleted(change.etag()?.moment());
            change.tx.rekey(row.id, key, &old, kept)?;
        }
        (key, kept) => change.tx.rekey(row.id, key, &old, kept)?,
    }
    Ok(())
}

/// Removes the snapshot or version of an earlier deletion for good.
fn remove_retained(
    change: &BlobChange<'_>,
    at: &BlobAt,
    place: &ResolvedBlob,
) -> BlobResult<DeletedBlob> {
    let key = match at.selector {
        Selector::Current => return Err(BlobDenial::BlobNotFound.into()),
        Selector::Snapshot(moment) => StateKey::Snapshot(moment),
        Selector::Version(moment) => StateKey::Version(moment),
    };
    let row = change.tx.state::<BlobState>(place.container, &at.name, key)?;
    let row = row.filter(|_| change.memory.settings.allows_permanent_delete());
    let row = row.ok_or(BlobDenial::BlobNotFound)?;
    row.record.immutability.check(change.now)?;
    change.tx.remove(row.id)?;
    let etags = (Some(row.record.etag), None);
    change.writer(BlobOperation::BlobDelete, &at.container, Some(&at.name), etags);
    Ok(DeletedBlob { permanent: true })
}
