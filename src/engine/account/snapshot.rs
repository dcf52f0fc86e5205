//! Snapshots of a share: taking, deleting, opening one to read.
//!
//! Decides what belongs to a snapshot beside its tree: the share's properties as they were, and
//! the records too large for an extended attribute, which are kept in the state folder under
//! identities that a copy does not have (in `view`). One snapshot is taken at a time (LOCKING
//! 8.1, `ShareSnapshotInProgress`).
//!
//! A snapshot is known, hence to be found and listed, only once all of it is there.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::{AccountError, AccountResult, ShareDenial};
use super::properties::{ShareProperties, ShareVersion};
use super::served::{Facts, Served};
use super::view::{SnapshotView, copy_sidecars};
use super::{Engine, ShareRef};
use crate::core::check_metadata;
use crate::core::lease::{ShareLease, ShareUse};
use crate::store::{Control, Metadata, Progress, SnapshotName, StoreError};

/// Snapshots of one share that are kept open for readers.
const VIEWS_MAX: usize = 16;

impl Engine {
    /// Takes a snapshot, with its own metadata or the share's. `progress` is asked between steps
    /// whether to go on.
    pub fn create_snapshot(
        &self,
        at: &ShareRef<'_>,
        metadata: Option<Metadata>,
        progress: &mut dyn FnMut(Progress) -> Control,
    ) -> AccountResult<(SnapshotName, ShareVersion)> {
        if let Some(metadata) = &metadata {
            check_metadata(metadata.iter())?;
        }
        self.share_to_change(at)?;
        let served = self.served(at.name)?;
        let mut properties = {
            let mut kept = served.kept()?;
            kept.own.lease.check(ShareUse::Other, at.lease_id, self.now())?;
            if std::mem::replace(&mut kept.making_snapshot, true) {
                return Err(ShareDenial::ShareSnapshotInProgress.into());
            }
            kept.own.properties.clone()
        };
        if let Some(metadata) = metadata {
            properties.metadata = metadata;
        }
        let made = self.make_snapshot(&served, &properties, progress);
        let mut kept = served.lock();
        kept.making_snapshot = false;
        let snapshot = made?;
        let version = properties.version();
        let facts = Facts { properties, lease: ShareLease::default() };
        kept.snapshots.insert(snapshot.clone(), facts);
        Ok((snapshot, version))
    }

    /// The snapshots of a share, oldest first.
    pub fn snapshots(&self, name: &str) -> AccountResult<Vec<SnapshotName>> {
        let served = self.served(name)?;
        let kept = served.kept()?;
        Ok(kept.snapshots.keys().cloned().collect())
    }

    /// Deletes the snapshot that `at` names; a leased one needs its ID.
    pub fn delete_snapshot(&self, at: &ShareRef<'_>) -> AccountResult<()> {
        let served = self.served(at.name)?;
        let snapshot = at.snapshot.ok_or(ShareDenial::ShareSnapshotNotFound)?;
        let facts = {
            let mut kept = served.kept()?;
            kept.known(snapshot)?.lease.check(ShareUse::Delete, at.lease_id, self.now())?;
            kept.views.remove(snapshot);
            kept.snapshots.remove(snapshot)
        };
        match served.snapshots.delete(snapshot) {
            Ok(()) | Err(StoreError::NotFound) => served.forget_copy(snapshot),
            Err(error) => {
                if served.snapshots.path(snapshot).is_dir() {
                    served.lock().snapshots.extend(facts.map(|facts| (snapshot.clone(), facts)));
                }
                Err(error.into())
            }
        }
    }

    /// A snapshot to read from.
    pub fn snapshot(
        &self,
        name: &str,
        snapshot: &SnapshotName,
    ) -> AccountResult<Arc<SnapshotView>> {
        let served = self.served(name)?;
        let mut kept = served.kept()?;
        kept.known(snapshot)?;
        if let Some(view) = kept.views.get(snapshot) {
            return Ok(Arc::clone(view));
        }
        let view = Arc::new(self.open_view(&served, snapshot)?);
        if kept.views.len() >= VIEWS_MAX {
            kept.views.clear();
        }
        kept.views.insert(snapshot.clone(), Arc::clone(&view));
        Ok(view)
    }

    /// A snapshot to tell the difference to, of the share or of the later snapshot `of`.
    pub fn previous_snapshot(
        &self,
        name: &str,
        previous: &SnapshotName,
        of: Option<&SnapshotName>,
    ) -> AccountResult<Arc<SnapshotView>> {
        if of.is_some_and(|of| previous >= of) {
            return Err(ShareDenial::PreviousSnapshotNotOlder.into());
        }
        match self.snapshot(name, previous) {
            Err(AccountError::Denied(ShareDenial::ShareSnapshotNotFound)) => {
                Err(ShareDenial::PreviousSnapshotNotFound.into())
            }
            found => found,
        }
    }

    fn make_snapshot(
        &self,
        served: &Served,
        properties: &ShareProperties,
        progress: &mut dyn FnMut(Progress) -> Control,
    ) -> AccountResult<SnapshotName> {
        let snapshot = served.snapshots.create(&served.path, self.now(), progress)?;
        let rest = self
            .open_view(served, &snapshot)
            .and_then(|view| copy_sidecars(&served.share, &view))
            .and_then(|()| served.keep_snapshot(&snapshot, properties));
        if let Err(error) = rest {
            // The first error is the one to tell.
            let _ = served.snapshots.delete(&snapshot);
            let _ = served.forget_copy(&snapshot);
            return Err(error.into());
        }
        Ok(snapshot)
    }

    fn open_view(
        &self,
        served: &Served,
        snapshot: &SnapshotName,
    ) -> Result<SnapshotView, StoreError> {
        let tree = served.snapshots.path(snapshot);
        let records = served.copies().join(snapshot.as_str());
        SnapshotView::open(&tree, &records, self.options.share.case)
    }
}

impl Served {
    /// Where the large records of snapshots are, a folder each.
    fn copies(&self) -> PathBuf {
        self.share.disk_state.path().join("snapshots")
    }

    /// Drops what is kept of a snapshot beside its tree.
    fn forget_copy(&self, snapshot: &SnapshotName) -> AccountResult<()> {
        self.forget_snapshot(snapshot)?;
        Ok(self.remove_copies(snapshot.as_str())?)
    }

    /// Removes records of snapshots that are gone: a crash came between the two.
    pub(super) fn sweep_snapshots(
        &self,
        known: &BTreeMap<SnapshotName, Facts>,
    ) -> Result<(), StoreError> {
        let entries = match fs::read_dir(self.copies()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(StoreError::Io { what: "listing snapshots", source }),
        };
        for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            match SnapshotName::parse(&name) {
                Some(snapshot) if known.contains_key(&snapshot) => {}
                Some(snapshot) => {
                    self.forget_snapshot(&snapshot)?;
                    self.remove_copies(&name)?;
                }
                None => log::warn!("{}: not ours, left alone", self.copies().join(name).display()),
            }
        }
        Ok(())
    }

    fn remove_copies(&self, name: &str) -> Result<(), StoreError> {
        match fs::remove_dir_all(self.copies().join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::Io { what: "removing the records of a snapshot", source: error })
            }
            _ => Ok(()),
        }
    }
}
