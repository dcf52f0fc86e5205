//! Shares that come and go: create, delete, restore, purge.
//!
//! Decides the order of steps, so that a share is there as a whole or not at all, and that a
//! deletion closes every handle inside first. The leases of files inside do not matter to a
//! deletion, the lease of the share does.
//!
//! A front end that keeps the [`Share`] of a deleted share is refused everything until a share of
//! that name is made or restored. One that follows the name goes on with that share
//! ([`super::followed`]).

use std::fs;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::super::share::Share;
use super::error::{FileServiceError, FileServiceResult, ShareDenial};
use super::followed::Untold;
use super::list::ShareDeletion;
use super::properties::{NewShare, ShareProperties, ShareVersion};
use super::served::{Served, ShareState};
use super::{FileService, Gone, POISON, ShareRef, ShareSlot};
use crate::disk::{Drawer, StateDir};
use crate::file::rules::SharePath;
use crate::file::store::root::ShareRoot;
use crate::journal::Happening;
use crate::rules::lease::{LeaseStatus, ShareUse};
use crate::rules::name::check_resource_name;
use crate::rules::{Context, Owner, Timestamp, time};
use crate::sync::Ordering;

const DAY: Duration = Duration::from_hours(24);
/// How long the service takes at least to delete a share, and accepts the same request again.
const DELETING: Duration = Duration::from_secs(30);
/// The most deletions that are remembered for that time.
const DELETIONS_MAX: usize = 1_024;

/// The treatment of snapshots by Delete Share (`x-ms-delete-snapshots`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeleteShareSnapshots {
    /// Refuse if there are any.
    #[default]
    None,
    /// Delete them too, unless one is leased.
    Include,
    /// Delete them too, leased or not.
    IncludeLeased,
}

/// A claim on a name: until it is dropped, no other request may create or delete a share of that
/// name. On drop the name gets the slot `then`.
struct NameClaim<'a> {
    engine: &'a FileService,
    name: Arc<str>,
    then: Option<ShareSlot>,
}

impl NameClaim<'_> {
    /// Gives the name to a share. Followers listen to the share before the first request can find
    /// it; the caller tells them of it when it holds no lock any more.
    fn serve(mut self, served: Served) -> Untold {
        let served = Arc::new(served);
        let untold = self.engine.publish(&[Arc::clone(&served.share)]);
        self.then = Some(ShareSlot::Served(served));
        untold
    }
}

impl Drop for NameClaim<'_> {
    fn drop(&mut self) {
        let mut slots = self.engine.slots_mut();
        match self.then.take() {
            Some(slot) => slots.insert(Arc::clone(&self.name), slot),
            None => slots.remove(&self.name),
        };
    }
}

impl FileService {
    pub fn create_share(&self, name: &str, new: NewShare) -> FileServiceResult<ShareVersion> {
        check_resource_name(name).map_err(ShareDenial::Name)?;
        let root = self.root()?;
        let not_replacing = self.not_replacing();
        let properties = self.new_properties(new)?;
        let version = properties.version();
        let claim = self.claim(name)?;
        let path = root.share_path(name)?;
        // A directory put there by hand since the start is a share from now on.
        let exists = path.is_dir();
        let served = if exists {
            self.open_served(name, None)?
        } else {
            root.create_share(name)?;
            self.open_served(name, Some(properties)).inspect_err(|_| take_back(&path))?
        };
        let untold = claim.serve(served);
        drop(not_replacing);
        untold.tell();
        if exists { Err(ShareDenial::ShareAlreadyExists.into()) } else { Ok(version) }
    }

    /// Deletes a share, closing all handles in it. It can be restored for as long as the
    /// retention says; the answer names its version then.
    pub fn delete_share(
        &self,
        cx: &Context,
        at: &ShareRef<'_>,
        snapshots: DeleteShareSnapshots,
    ) -> FileServiceResult<Option<ShareDeletion>> {
        let _not_replacing = self.not_replacing();
        let served = self.served(at.name)?;
        let root = self.root()?;
        let (mut claim, properties) = {
            let _changing = served.changing();
            let mut kept = served.kept()?;
            self.check_delete(&kept, at, snapshots)?;
            kept.going = true;
            (self.claim_going(&served), kept.own.properties.clone())
        };
        match self.carry_out(root, cx.owner(), &served) {
            // Settled before the name is free, so that no other deletion takes the same version.
            Ok(deleted) => {
                self.keep_epochs_above(root, served.share.epoch());
                self.remember_deletion(at.name, deleted.when);
                self.settle_deleted(root, &served.share, deleted, properties)
            }
            Err(error) => {
                if root.share_path(at.name)?.is_dir() {
                    served.lock().going = false;
                    claim.then = Some(ShareSlot::Served(served));
                }
                Err(error)
            }
        }
    }

    /// New shares have handles with higher epochs: a share that takes the name of a deleted one has
    /// none of its handles.
    fn keep_epochs_above(&self, root: &ShareRoot, epoch: u32) {
        let floor = self.epoch_floor.fetch_max(epoch.into(), Ordering::Relaxed);
        if floor < epoch.into()
            && let Err(error) = root.raise_epoch_floor(epoch)
        {
            // The share is deleted, and no handle outlives this process.
            log::warn!("the epoch of handles is not kept: {error}");
        }
    }

    /// True if a share of that name was deleted in the last [`DELETING`] seconds, and none has
    /// taken the name since.
    pub fn was_deleted_lately(&self, name: &str) -> bool {
        if self.slots().contains_key(name) {
            return false;
        }
        let now = self.now();
        let lately = self.deleted_lately.lock().expect(POISON);
        lately.iter().any(|(gone, when)| gone == name && now < when.after(DELETING))
    }

    fn remember_deletion(&self, name: &str, when: Timestamp) {
        let mut lately = self.deleted_lately.lock().expect(POISON);
        lately.retain(|(_, earlier)| when < earlier.after(DELETING));
        if lately.len() == DELETIONS_MAX {
            lately.pop_front();
        }
        lately.push_back((name.to_owned(), when));
    }

    /// Brings a deleted share back as it was, its lease included.
    pub fn restore_share(&self, name: &str, version: &str) -> FileServiceResult<ShareVersion> {
        check_resource_name(name).map_err(ShareDenial::Name)?;
        let root = self.root()?;
        let not_replacing = self.not_replacing();
        let key = (name.to_owned(), version.to_owned());
        let claim = self.claim(name)?;
        let (when, share) = {
            let deleted = self.deleted.lock().expect(POISON);
            let gone = deleted.get(&key).ok_or(ShareDenial::ShareNotFound)?;
            self.remaining_days(gone.when).ok_or(ShareDenial::ShareNotFound)?;
            (gone.when, gone.share.upgrade())
        };
        root.restore_share(name, version)?;
        let opened = match share {
            Some(share) => self.claim_directory(name).and_then(|claim| {
                share.serve_again();
                self.serve(share, None, claim)
            }),
            None => self.open_served(name, None),
        };
        let served = match opened {
            Ok(served) => served,
            Err(error) => {
                root.delete_share(name, version, when)?;
                return Err(error);
            }
        };
        self.deleted.lock().expect(POISON).remove(&key);
        let version = served.lock().own.properties.version();
        let untold = claim.serve(served);
        drop(not_replacing);
        untold.tell();
        Ok(version)
    }

    /// Removes deleted shares whose time is over, for good; how many there were.
    pub fn purge_expired(&self) -> FileServiceResult<usize> {
        let Ok(root) = self.root() else { return Ok(0) };
        let _not_replacing = self.not_replacing();
        let expired: Vec<_> = {
            let mut deleted = self.deleted.lock().expect(POISON);
            deleted
                .extract_if(.., |_, gone| self.remaining_days(gone.when).is_none())
                .map(|(key, _)| key)
                .collect()
        };
        for (name, version) in &expired {
            root.purge(name, version)?;
        }
        Ok(expired.len())
    }

    /// Days a share deleted at `when` can still be restored, a begun one counting as whole; none
    /// if its time is over.
    pub(super) fn remaining_days(&self, when: Timestamp) -> Option<u32> {
        let retention = DAY * self.options.retention_days?;
        let left = when.after(retention).since(self.now()).min(retention);
        let days = u32::try_from(left.as_nanos().div_ceil(DAY.as_nanos())).unwrap_or(u32::MAX);
        (days > 0).then_some(days)
    }

    /// Loads the deleted shares of earlier servers, which can be restored. One that is damaged is
    /// named in the log and stays where it is.
    pub(super) fn load_deleted(&self, folder: &Path) -> FileServiceResult<()> {
        let mut deleted = self.deleted.lock().expect(POISON);
        let (found, damaged) = self.root()?.deleted()?;
        for error in damaged {
            log::error!("a deleted share cannot be restored: {error}");
        }
        for share in found {
            let entry = format!("{}@{}", share.name, share.version);
            let state = folder.join("deleted").join(entry).join("state");
            let properties = if state.is_dir() {
                StateDir::open(&state)?.get(Drawer::Share, "properties").unwrap_or_else(|error| {
                    log::error!("{}@{}: {error}", share.name, share.version);
                    None
                })
            } else {
                None
            };
            let properties = properties.unwrap_or_else(|| ShareProperties::new(share.when));
            let gone = Gone { when: share.when, properties, share: Weak::new() };
            deleted.insert((share.name, share.version), gone);
        }
        Ok(())
    }

    /// Takes the name of a share that is to come.
    fn claim(&self, name: &str) -> FileServiceResult<NameClaim<'_>> {
        let mut slots = self.slots_mut();
        match slots.get(name) {
            None => {}
            Some(ShareSlot::Going) => return Err(ShareDenial::ShareBeingDeleted.into()),
            Some(ShareSlot::Served(_) | ShareSlot::Coming) => {
                return Err(ShareDenial::ShareAlreadyExists.into());
            }
        }
        let name: Arc<str> = name.into();
        slots.insert(Arc::clone(&name), ShareSlot::Coming);
        Ok(NameClaim { engine: self, name, then: None })
    }

    /// Takes the name of a share that is to be deleted. The caller has marked the share as going.
    fn claim_going(&self, served: &Served) -> NameClaim<'_> {
        let name = Arc::clone(served.share.name());
        self.set_slot(Arc::clone(&name), ShareSlot::Going);
        NameClaim { engine: self, name, then: None }
    }

    fn check_delete(
        &self,
        kept: &ShareState,
        at: &ShareRef<'_>,
        snapshots: DeleteShareSnapshots,
    ) -> FileServiceResult<()> {
        let now = self.now();
        kept.own.lease.check(ShareUse::Delete, at.lease_id, now)?;
        if kept.making_snapshot {
            return Err(ShareDenial::ShareSnapshotInProgress.into());
        }
        let leased = || kept.snapshots.values().any(|s| s.lease.status(now) == LeaseStatus::Locked);
        match snapshots {
            DeleteShareSnapshots::None if !kept.snapshots.is_empty() => {
                Err(ShareDenial::ShareHasSnapshots.into())
            }
            DeleteShareSnapshots::Include if leased() => {
                Err(ShareDenial::DeleteShareWhenSnapshotLeased.into())
            }
            _ => Ok(()),
        }
    }

    /// Closes what is open and moves the share away.
    fn carry_out(
        &self,
        root: &ShareRoot,
        who: &Owner,
        served: &Served,
    ) -> FileServiceResult<DeletedAt> {
        let share = &served.share;
        let deleted = share.delete_with(who, || {
            let when = self.now();
            let version = self.free_version(share.name(), when);
            root.delete_share(share.name(), &version, when).map(|()| DeletedAt { version, when })
        });
        let deleted = deleted.map_err(|source| FileServiceError::Share {
            what: format!("deleting {}", share.name()),
            source,
        })??;
        share.note(None, &SharePath::default(), who, Happening::Removed);
        Ok(deleted)
    }

    fn settle_deleted(
        &self,
        root: &ShareRoot,
        share: &Arc<Share>,
        DeletedAt { version, when }: DeletedAt,
        properties: ShareProperties,
    ) -> FileServiceResult<Option<ShareDeletion>> {
        let Some(remaining_days) = self.remaining_days(when) else {
            root.purge(share.name(), &version)?;
            return Ok(None);
        };
        let gone = Gone { when, properties, share: Arc::downgrade(share) };
        let key = (share.name().to_string(), version.clone());
        self.deleted.lock().expect(POISON).insert(key, gone);
        Ok(Some(ShareDeletion { version, when, remaining_days }))
    }

    /// A version like the service's: the moment in units of 100 ns since 1601, in hexadecimal;
    /// the next one where a share of that name was deleted at the same moment.
    fn free_version(&self, name: &str, now: Timestamp) -> String {
        const EPOCH_TICKS: i64 = 116_444_736_000_000_000;
        let deleted = self.deleted.lock().expect(POISON);
        let mut ticks = (now.0 / time::TICK_NANOS).saturating_add(EPOCH_TICKS);
        loop {
            let version = format!("{ticks:016X}");
            if !deleted.contains_key(&(name.to_owned(), version.clone())) {
                return version;
            }
            ticks = ticks.wrapping_add(1);
        }
    }
}

/// Removes the directory of a share that could not be opened after it was made, if the directory is
/// still empty.
fn take_back(path: &Path) {
    if let Err(error) = fs::remove_dir(path) {
        log::error!("{}: could not be served, nor removed: {error}", path.display());
    }
}

/// Under which version a share was deleted, and when.
struct DeletedAt {
    version: String,
    when: Timestamp,
}
