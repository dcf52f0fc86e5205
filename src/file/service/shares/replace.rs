//! All shares at once: saved, and moved aside by a reset or a restore, so that others take their
//! places.
//!
//! Decides how the shares that were served end: requests under way are waited for, handles are
//! closed by force, later requests are refused with "try again", and nothing more is written where
//! the next shares are. When that happens is decided in `bench/states`; what belongs to the shares
//! on the disk, in [`crate::file::store::root`].

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{FileServiceError, FileServiceResult};
use super::followed::Untold;
use super::properties::NewShare;
use super::served::Served;
use super::{FileService, POISON, ShareSlot, ticks_of};
use crate::disk::part::{HeldPart, NextData, Part, PartError, SavingPart};
use crate::disk::steps::step;
use crate::disk::{Durability, StoreError};
use crate::file::store::root::{ShareRoot, saved};
use crate::rules::{Client, Owner};
use crate::sync::front_end::assert_may_block;
use crate::sync::{Ordering, RwLockReadGuard, RwLockWriteGuard};

/// The session number of a reset or a restore, in the log of events.
const SESSION: u64 = 1 << 41;

/// All shares of an account.
pub(crate) struct SharesPart<'a> {
    service: &'a FileService,
    /// The shares that exist after a reset, beside those that are mounted.
    after_reset: BTreeSet<String>,
    /// The followers of shares that were replaced.
    untold: Cell<Option<Untold>>,
}

/// All shares of an account, closed. Dropped before [`HeldPart::end`], they are served again.
struct ReplacingShares<'a> {
    part: &'a SharesPart<'a>,
    root: &'a ShareRoot,
    old: Vec<Arc<Served>>,
    ended: bool,
    _alone: RwLockWriteGuard<'a, ()>,
}

/// Shares are copied while programs write, as a snapshot is: they are not of one moment.
struct SavingShares<'a> {
    service: &'a FileService,
    folder: PathBuf,
}

impl FileService {
    /// A guard to hold while a share or a snapshot is created, deleted or restored. Waits while all
    /// shares are replaced.
    pub(super) fn not_replacing(&self) -> RwLockReadGuard<'_, ()> {
        assert_may_block("a reset or restore of all shares");
        self.replacing.read().expect(POISON)
    }
}

impl<'a> SharesPart<'a> {
    pub(crate) fn new(service: &'a FileService, after_reset: BTreeSet<String>) -> Self {
        Self { service, after_reset, untold: Cell::default() }
    }

    /// Closes all shares. May wait for a snapshot that is being taken.
    fn close(&self) -> FileServiceResult<ReplacingShares<'_>> {
        let client = Client { session: SESSION, name: "a reset or a restore".to_owned() };
        let who = Owner { client: Arc::new(client), pid: std::process::id(), program: None };
        let (service, root) = (self.service, self.service.root()?);
        let alone = service.replacing.write().expect(POISON);
        let served: Vec<_> = service.slots().values().filter_map(ShareSlot::served).collect();
        let mut replacing =
            ReplacingShares { part: self, root, old: Vec::new(), ended: false, _alone: alone };
        for served in served {
            let begun = served.share.begin_replacing(&who);
            begun.map_err(|source| FileServiceError::Share {
                what: format!("closing {}", served.share.name()),
                source,
            })?;
            replacing.old.push(served);
        }
        Ok(replacing)
    }
}

impl Part for SharesPart<'_> {
    fn check(&self, saved: &Path) -> Result<(), PartError> {
        Ok(saved::check_saved(saved)?)
    }

    fn stage(&self, next: &NextData<'_>) -> Result<(), PartError> {
        let Some(folder) = next.saved else { return Ok(()) };
        saved::copy_saved(folder, &coming(next)).map_err(FileServiceError::Snapshot)?;
        step();
        Ok(())
    }

    fn hold(&self) -> Result<Box<dyn HeldPart + '_>, PartError> {
        Ok(Box::new(self.close()?))
    }

    fn replaced(&self) {
        if let Some(untold) = self.untold.take() {
            untold.tell();
        }
    }

    fn save(&self, folder: &Path) -> Result<Box<dyn SavingPart + '_>, PartError> {
        Ok(Box::new(SavingShares { service: self.service, folder: folder.to_owned() }))
    }
}

impl SavingPart for SavingShares<'_> {
    /// Meanwhile no share is made, deleted or restored, and no snapshot is taken.
    fn finish(self: Box<Self>) -> Result<Vec<String>, PartError> {
        let root = self.service.root()?;
        let _alone = self.service.replacing.write().expect(POISON);
        Ok(root.save(&self.folder).map_err(FileServiceError::Snapshot)?)
    }
}

/// Where replaced shares go.
fn aside(next: &NextData<'_>) -> PathBuf {
    next.scrap.join("old")
}

/// Where the shares are that take their places.
fn coming(next: &NextData<'_>) -> PathBuf {
    next.scrap.join("new")
}

impl ReplacingShares<'_> {
    /// The stamps of these shares, which an earlier process may have given out, do not come again
    /// when the clock is set back with all data.
    fn keep_stamps(&self) {
        let FileService { tags, snapshot_stamps, deleted, .. } = self.part.service;
        for served in &self.old {
            let kept = served.lock();
            kept.own.properties.tag.note_in(tags);
            for snapshot in kept.snapshots.keys() {
                snapshot_stamps.given(ticks_of(snapshot.taken()));
            }
        }
        for gone in deleted.lock().expect(POISON).values() {
            gone.properties.tag.note_in(tags);
        }
        tags.clock_is_set();
        snapshot_stamps.clock_is_set();
    }

    /// Serves the shares whose directories are there by now, and makes those of `wanted` that are
    /// missing. What is written is not synced.
    fn serve(&self, wanted: &BTreeSet<String>) -> FileServiceResult<Untold> {
        let service = self.part.service;
        let mut there: BTreeSet<_> = self.root.shares()?.into_iter().collect();
        let mut next = Vec::new();
        for name in wanted.union(&there.clone()) {
            let fresh = if there.insert(name.clone()) {
                // Not a refusal to a client that asked for it: the error names the path.
                let made = self.root.create_share_for(name, Durability::Cached);
                made.map_err(FileServiceError::Root)?;
                Some(service.new_properties(NewShare::default())?)
            } else {
                None
            };
            let served = service.open_served_for(name, fresh, Durability::Cached)?;
            next.push(Arc::new(served));
        }
        service.deleted.lock().expect(POISON).clear();
        service.deleted_lately.lock().expect(POISON).clear();
        service.load_deleted(self.root.folder())?;
        let shares: Vec<_> = next.iter().map(|served| Arc::clone(&served.share)).collect();
        for share in &shares {
            share.state().begin();
        }
        let slot =
            |served: Arc<Served>| (Arc::clone(served.share.name()), ShareSlot::Served(served));
        *service.slots_mut() = next.into_iter().map(slot).collect();
        Ok(service.publish(&shares))
    }
}

impl HeldPart for ReplacingShares<'_> {
    fn prepare(&mut self, next: &NextData<'_>) -> Result<(), PartError> {
        let prepared = self.root.prepare_replacing(&aside(next), &coming(next));
        Ok(prepared.map_err(FileServiceError::from)?)
    }

    fn end(&mut self) {
        self.ended = true;
        for served in &self.old {
            served.share.end_replaced();
        }
    }

    fn replace(&mut self, next: &NextData<'_>) -> Result<(), PartError> {
        self.keep_stamps();
        let replaced = self.root.set_aside(&aside(next));
        let floor = replaced.and_then(|()| self.root.epoch_floor());
        let floor = floor.map_err(FileServiceError::from)?;
        self.part.service.epoch_floor.store(floor.into(), Ordering::Relaxed);
        Ok(self.root.put_in_place(&coming(next)).map_err(FileServiceError::from)?)
    }

    /// A restored state has its own shares; an empty one those of a start, and those that are
    /// mounted.
    fn resume(&mut self, next: &NextData<'_>) -> Result<(), PartError> {
        // Their directories are aside; the number of claims is bounded.
        for served in &self.old {
            *served.claim.lock().expect(POISON) = None;
        }
        let mut wanted = BTreeSet::new();
        if next.saved.is_none() {
            wanted.clone_from(&self.part.after_reset);
            wanted.extend(self.part.service.followed_names());
        }
        self.part.untold.set(Some(self.serve(&wanted)?));
        Ok(())
    }
}

impl Drop for ReplacingShares<'_> {
    fn drop(&mut self) {
        if !self.ended {
            for served in &self.old {
                served.share.serve_again();
            }
        }
    }
}

impl From<FileServiceError> for PartError {
    fn from(error: FileServiceError) -> Self {
        Self::new(&error, matches!(error.store_error(), Some(StoreError::NoSpace)))
    }
}
