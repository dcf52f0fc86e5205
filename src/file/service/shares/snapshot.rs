//! Snapshots of a share: taking, deleting, opening one to read.
//!
//! Decides what belongs to a snapshot beside its tree: the share's properties as they were, and
//! the records too large for an extended attribute, which are kept in the state folder under
//! identities that a copy does not have (in `view`). One snapshot is taken at a time.
//!
//! A snapshot is known, hence to be found and listed, only once all of it is there.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::{FileServiceError, FileServiceResult, ShareDenial};
use super::properties::{ShareProperties, ShareVersion};
use super::served::{Facts, Served};
use super::view::{SnapshotView, copy_sidecars};
use super::{FileService, ShareRef, ticks_of};
use crate::disk::StoreError;
use crate::file::store::share::{CloneProgress, Control, Metadata, SnapshotName};
use crate::rules::check_metadata;
use crate::rules::lease::{ShareLease, ShareUse};

/// Snapshots of one share that are kept open for readers.
const VIEWS_MAX: usize = 16;

impl FileService {
    /// Takes a snapshot, with its own metadata or the share's. `progress` is asked between steps
    /// whether to go on.
    pub fn create_snapshot(
        &self,
        at: &ShareRef<'_>,
        metadata: Option<Metadata>,
        progress: &mut dyn FnMut(CloneProgress) -> Control,
    ) -> FileServiceResult<(SnapshotName, ShareVersion)> {
        if let Some(metadata) = &metadata {
            check_metadata(metadata.iter())?;
        }
        let _not_replacing = self.not_replacing();
        self.share_to_change(at)?;
        let served = self.served(at.name)?;
        let mut properties = {
            let mut kept = served.kept()?;
            kept.own.lease.check(ShareUse::Other, at.lease_id, self.now())?;
            if kept.making_snapshot {
                return Err(ShareDenial::ShareSnapshotInProgress.into());
            }
            kept.making_snapshot = true;
            kept.own.properties.clone()
        };
        if let Some(metadata) = metadata {
            properties.metadata = metadata;
        }
        // Writes are accounted for from now on: those during the copy count as later.
        served.share.set_snapshotted(true);
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
    pub fn snapshots(&self, name: &str) -> FileServiceResult<Vec<SnapshotName>> {
        let served = self.served(name)?;
        let kept = served.kept()?;
        Ok(kept.snapshots.keys().cloned().collect())
    }

    /// Deletes the snapshot that `at` names; a leased one needs its ID.
    pub fn delete_snapshot(&self, at: &ShareRef<'_>) -> FileServiceResult<()> {
        let _not_replacing = self.not_replacing();
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
    ) -> FileServiceResult<Arc<SnapshotView>> {
        let served = self.served(name)?;
        {
            let kept = served.kept()?;
            kept.known(snapshot)?;
            if let Some(view) = kept.views.get(snapshot) {
                return Ok(Arc::clone(view));
            }
        }
        let view = Arc::new(self.open_view(&served, snapshot)?);
        let mut kept = served.kept()?;
        kept.known(snapshot)?;
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
    ) -> FileServiceResult<Arc<SnapshotView>> {
        if of.is_some_and(|of| previous >= of) {
            return Err(ShareDenial::PreviousSnapshotNotOlder.into());
        }
        match self.snapshot(name, previous) {
            Err(FileServiceError::Denied(ShareDenial::ShareSnapshotNotFound)) => {
                Err(ShareDenial::PreviousSnapshotNotFound.into())
            }
            found => found,
        }
    }

    fn make_snapshot(
        &self,
        served: &Served,
        properties: &ShareProperties,
        progress: &mut dyn FnMut(CloneProgress) -> Control,
    ) -> FileServiceResult<SnapshotName> {
        let snapshot = served.snapshots.create(&served.path, self.snapshot_time(), progress)?;
        self.snapshot_stamps.given(ticks_of(snapshot.taken()));
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
        SnapshotView::open(&tree, &records, self.options.share.case, snapshot.taken())
    }
}

impl Served {
    /// Where the large records of snapshots are, a folder each.
    fn copies(&self) -> PathBuf {
        self.share.state().path().join("snapshots")
    }

    /// Drops what is kept of a snapshot beside its tree.
    fn forget_copy(&self, snapshot: &SnapshotName) -> FileServiceResult<()> {
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
