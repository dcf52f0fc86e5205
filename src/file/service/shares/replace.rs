//! All shares at once: moved aside by a reset or a restore, so that others take their places.
//!
//! Decides how the shares that were served end: requests under way are waited for, handles are
//! closed by force, later requests are refused with "try again", and nothing more is written where
//! the next shares are. When that happens, and what comes next, is decided in
//! [`crate::bench::states`].

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, TryLockError};

use super::error::{FileServiceError, FileServiceResult};
use super::followed::Untold;
use super::properties::NewShare;
use super::served::Served;
use super::{FileService, POISON, ShareSlot, ticks_of};
use crate::bench::saved::copy_shares;
use crate::disk::Durability;
use crate::disk::non_blocking::check_may_wait;
use crate::file::store::root::ShareRoot;
use crate::rules::Owner;
use crate::sync::{Ordering, RwLockReadGuard, RwLockWriteGuard};

/// All shares of an account, closed. Dropped before [`ReplacingShares::end`], they are served
/// again.
pub(crate) struct ReplacingShares<'a> {
    service: &'a FileService,
    root: &'a ShareRoot,
    old: Vec<Arc<Served>>,
    ended: bool,
    _alone: RwLockWriteGuard<'a, ()>,
}

impl FileService {
    /// A guard to hold while a share or a snapshot is created, deleted or restored. Waits while all
    /// shares are replaced.
    pub(super) fn not_replacing(&self) -> FileServiceResult<RwLockReadGuard<'_, ()>> {
        match self.replacing.try_read() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::WouldBlock) => {
                check_may_wait()?;
                Ok(self.replacing.read().expect(POISON))
            }
            Err(TryLockError::Poisoned(_)) => panic!("{POISON}"),
        }
    }

    /// Copies all shares to the folder `to`, with all that belongs to them. Meanwhile none is made,
    /// deleted or restored, and no snapshot is taken.
    pub(crate) fn save_shares(&self, to: &Path) -> FileServiceResult<()> {
        let root = self.root()?;
        let _alone = self.replacing.write().expect(POISON);
        copy_shares(root.layout(), to).map_err(FileServiceError::Snapshot)
    }

    /// Closes all shares. May wait for a snapshot that is being taken.
    pub(crate) fn begin_replacing(&self, who: &Owner) -> FileServiceResult<ReplacingShares<'_>> {
        let root = self.root()?;
        let alone = self.replacing.write().expect(POISON);
        let served = self.slots().values().filter_map(ShareSlot::served).collect();
        let mut replacing =
            ReplacingShares { service: self, root, old: Vec::new(), ended: false, _alone: alone };
        let served: Vec<Arc<Served>> = served;
        for served in served {
            let begun = served.share.begin_replacing(who);
            begun.map_err(|source| FileServiceError::Share {
                what: format!("closing {}", served.share.name()),
                source,
            })?;
            replacing.old.push(served);
        }
        Ok(replacing)
    }
}

impl ReplacingShares<'_> {
    /// Does all that can fail and changes nothing: the shares will be moved into the folder
    /// `aside`, and those of the folder `next` will take their places.
    pub(crate) fn prepare(&self, aside: &Path, next: &Path) -> FileServiceResult<()> {
        Ok(self.root.prepare_replacing(aside, next)?)
    }

    /// The shares are not served again, whatever happens.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        for served in &self.old {
            served.share.end_replaced();
        }
    }

    /// Moves the shares into the folder `aside`.
    pub(crate) fn set_aside(&self, aside: &Path) -> FileServiceResult<()> {
        self.keep_stamps();
        self.root.set_aside(aside)?;
        let floor = self.root.epoch_floor()?;
        self.service.epoch_floor.store(floor.into(), Ordering::Relaxed);
        Ok(())
    }

    /// The stamps of these shares, which an earlier process may have given out, do not come again
    /// when the clock is set back with all data.
    fn keep_stamps(&self) {
        let FileService { tags, snapshot_stamps, deleted, .. } = self.service;
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

    /// Puts the shares in the folder `from` in their places.
    pub(crate) fn put_in_place(&self, from: &Path) -> FileServiceResult<()> {
        Ok(self.root.put_in_place(from)?)
    }

    /// Serves the shares whose directories are there by now, and makes those of `wanted` that are
    /// missing. What is written is not synced.
    pub(crate) fn serve(&self, wanted: &BTreeSet<String>) -> FileServiceResult<Untold> {
        let service = self.service;
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

impl Drop for ReplacingShares<'_> {
    fn drop(&mut self) {
        if !self.ended {
            for served in &self.old {
                served.share.serve_again();
            }
        }
    }
}
