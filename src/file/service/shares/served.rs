//! A share that is served, with its share-level state.
//!
//! Decides how the state is loaded and saved: each part is an entry of the state folder and is
//! flushed to the disk before it takes effect in memory, hence before it is acknowledged. A part
//! that cannot be parsed is named in the log and counts as its default until it is set again: one
//! damaged file must not make a share unusable.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::share::Share;
use super::error::{FileServiceError, FileServiceResult, ShareDenial};
use super::properties::ShareProperties;
use super::view::SnapshotView;
use super::{FileService, Home, POISON};
use crate::disk::{Drawer, Durability, StateDir, StoreError, keep_epoch_in, last_epoch_in};
use crate::file::rules::SharePath;
use crate::file::store::root::ShareClaim;
use crate::file::store::share::{SnapshotName, Snapshots, Usage};
use crate::rules::Timestamp;
use crate::rules::lease::{LeaseDuration, LeaseState, LeaseStatus, ShareLease};
use crate::sync::{Mutex, MutexGuard, Ordering};

const PROPERTIES: &str = "properties";
const LEASE: &str = "lease";

/// A share being served.
pub(super) struct Served {
    pub share: Arc<Share>,
    pub path: PathBuf,
    pub snapshots: Snapshots,
    pub usage: Arc<Usage>,
    /// Keeps other servers away from the directory.
    pub claim: Mutex<Option<ShareClaim>>,
    /// Never held over disk access: event loops ask here.
    kept: Mutex<ShareState>,
    /// Held while the state is changed and saved. Taken before `kept`.
    changing: Mutex<()>,
}

/// The state of a share as a whole.
#[derive(Default)]
pub(super) struct ShareState {
    pub own: Facts,
    pub snapshots: BTreeMap<SnapshotName, Facts>,
    /// Snapshots that were read lately, open.
    pub views: HashMap<SnapshotName, Arc<SnapshotView>>,
    pub making_snapshot: bool,
    pub going: bool,
}

/// The properties and the lease of a share or a snapshot.
#[derive(Clone, Default)]
pub(super) struct Facts {
    pub properties: ShareProperties,
    pub lease: ShareLease,
}

/// A lease as others may see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseView {
    pub status: LeaseStatus,
    pub state: LeaseState,
    pub duration: Option<LeaseDuration>,
    /// When it ends by itself, in seconds.
    pub seconds_left: Option<u64>,
}

impl LeaseView {
    pub(super) fn of(lease: &ShareLease, now: Timestamp) -> Self {
        Self {
            status: lease.status(now),
            state: lease.state(now),
            duration: lease.duration(now),
            seconds_left: lease.seconds_left(now),
        }
    }
}

impl ShareState {
    /// Refuses a snapshot that is not there.
    pub fn known(&self, snapshot: &SnapshotName) -> Result<&Facts, ShareDenial> {
        self.snapshots.get(snapshot).ok_or(ShareDenial::ShareSnapshotNotFound)
    }

    /// The properties and the lease of the share or of one of its snapshots.
    pub fn facts(&self, snapshot: Option<&SnapshotName>) -> Result<&Facts, ShareDenial> {
        snapshot.map_or(Ok(&self.own), |snapshot| self.known(snapshot))
    }

    pub fn facts_mut(
        &mut self,
        snapshot: Option<&SnapshotName>,
    ) -> Result<&mut Facts, ShareDenial> {
        match snapshot {
            None => Ok(&mut self.own),
            Some(snapshot) => {
                self.snapshots.get_mut(snapshot).ok_or(ShareDenial::ShareSnapshotNotFound)
            }
        }
    }
}

impl FileService {
    /// Opens a share whose directory is there. `fresh` are the properties of one that was just
    /// made: whatever an earlier share of that name left in the state folder is void.
    pub(super) fn open_served(
        &self,
        name: &str,
        fresh: Option<ShareProperties>,
    ) -> FileServiceResult<Served> {
        self.open_served_for(name, fresh, Durability::Synced)
    }

    /// As [`FileService::open_served`]; with [`Durability::Cached`] nothing is synced, for a
    /// replacement of all data, which is synced as a whole.
    pub(super) fn open_served_for(
        &self,
        name: &str,
        fresh: Option<ShareProperties>,
        durability: Durability,
    ) -> FileServiceResult<Served> {
        // Before the share is opened, which completes what a killed server left.
        let claim = self.claim_directory(name)?;
        let (path, state, _) = self.places(name)?;
        let floor = u32::try_from(self.epoch_floor.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        if floor > last_epoch_in(&state)? {
            keep_epoch_in(&state, floor, Durability::Cached)?;
        }
        let options = &self.options;
        let state = match durability {
            Durability::Synced => StateDir::open(&state)?,
            Durability::Cached => StateDir::open_coming(&state)?,
        };
        let share = Share::open_with(
            name,
            &path,
            state,
            options.share,
            Arc::clone(&self.clock),
            self.journal.clone(),
        )
        .map_err(|source| FileServiceError::Share { what: format!("opening {name}"), source })?;
        self.serve(Arc::new(share), fresh, claim)
    }

    /// Claims the directory of a share for this server; a single directory is claimed already.
    pub(super) fn claim_directory(&self, name: &str) -> FileServiceResult<Option<ShareClaim>> {
        Ok(match &self.home {
            Home::Root(root) => root.claim(name)?,
            Home::Single(_) => None,
        })
    }

    /// Serves an open share, with what its state folder says of it.
    pub(super) fn serve(
        &self,
        share: Arc<Share>,
        fresh: Option<ShareProperties>,
        claim: Option<ShareClaim>,
    ) -> FileServiceResult<Served> {
        let (path, _, snapshots) = self.places(share.name())?;
        let usage = Arc::new(Usage::new(&path, self.options.usage_refresh));
        let served = Served {
            share,
            path,
            snapshots,
            usage,
            claim: Mutex::new(claim),
            kept: Mutex::default(),
            changing: Mutex::default(),
        };
        let own = match fresh {
            Some(properties) => {
                served.keep(PROPERTIES, &properties)?;
                served.drop_entry(LEASE)?;
                Facts { properties, lease: ShareLease::default() }
            }
            None => served.load_own()?,
        };
        let snapshots = served.load_snapshots(&own)?;
        served.share.set_snapshotted(!snapshots.is_empty());
        *served.lock() = ShareState { own, snapshots, ..ShareState::default() };
        Ok(served)
    }

    fn places(&self, name: &str) -> FileServiceResult<(PathBuf, PathBuf, Snapshots)> {
        Ok(match &self.home {
            Home::Root(root) => {
                (root.share_path(name)?, root.state_path(name)?, root.snapshots(name)?)
            }
            Home::Single(single) => {
                (single.share_path().to_owned(), single.state_path(), single.snapshots())
            }
        })
    }
}

impl Served {
    /// The state of the share, unless the share is being deleted.
    pub fn kept(&self) -> Result<MutexGuard<'_, ShareState>, ShareDenial> {
        let kept = self.lock();
        if kept.going { Err(ShareDenial::ShareBeingDeleted) } else { Ok(kept) }
    }

    /// Keeps others from changing what is kept. The caller looks at it with [`Served::kept`],
    /// writes to the disk with only this held, and then changes it.
    pub fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().expect(POISON)
    }

    /// The state of the share, also while the share is being deleted.
    pub fn lock(&self) -> MutexGuard<'_, ShareState> {
        self.kept.lock().expect(POISON)
    }

    /// Replaces the share's own properties, on disk first.
    pub fn keep_properties(&self, properties: ShareProperties) -> Result<(), StoreError> {
        self.keep(PROPERTIES, &properties)?;
        self.lock().own.properties = properties;
        Ok(())
    }

    /// Keeps the properties of a new snapshot.
    pub fn keep_snapshot(
        &self,
        snapshot: &SnapshotName,
        properties: &ShareProperties,
    ) -> Result<(), StoreError> {
        self.keep(&entry(PROPERTIES, Some(snapshot)), properties)
    }

    /// Keeps a lease beyond this process.
    pub fn keep_lease(
        &self,
        snapshot: Option<&SnapshotName>,
        lease: &ShareLease,
    ) -> Result<(), StoreError> {
        let key = entry(LEASE, snapshot);
        if *lease == ShareLease::default() { self.drop_entry(&key) } else { self.keep(&key, lease) }
    }

    /// Drops what is kept of a snapshot that is gone.
    pub fn forget_snapshot(&self, snapshot: &SnapshotName) -> Result<(), StoreError> {
        self.drop_entry(&entry(LEASE, Some(snapshot)))?;
        self.drop_entry(&entry(PROPERTIES, Some(snapshot)))
    }

    /// A directory that was never served has the defaults, from the moment it was made.
    fn load_own(&self) -> FileServiceResult<Facts> {
        let properties = if let Some(properties) = self.load(PROPERTIES)? {
            properties
        } else {
            let root = self.share.disk().stat(&SharePath::default())?;
            let properties = ShareProperties::new(root.created);
            self.keep(PROPERTIES, &properties)?;
            properties
        };
        Ok(Facts { properties, lease: self.load(LEASE)?.unwrap_or_default() })
    }

    /// The snapshots that are there. One without properties of its own was cut short by a crash
    /// after its tree was complete: it is kept, with those that the share has now. They are
    /// written down, so that it goes on having them when the share's change.
    fn load_snapshots(&self, own: &Facts) -> FileServiceResult<BTreeMap<SnapshotName, Facts>> {
        let mut snapshots = BTreeMap::new();
        for snapshot in self.snapshots.list()? {
            let properties = match self.load(&entry(PROPERTIES, Some(&snapshot)))? {
                Some(properties) => properties,
                None => self.adopt(&snapshot, own)?,
            };
            let lease = self.load(&entry(LEASE, Some(&snapshot)))?.unwrap_or_default();
            snapshots.insert(snapshot, Facts { properties, lease });
        }
        self.sweep_snapshots(&snapshots)?;
        Ok(snapshots)
    }

    fn adopt(&self, snapshot: &SnapshotName, own: &Facts) -> Result<ShareProperties, StoreError> {
        let name = self.share.name();
        log::warn!("{name}: snapshot {snapshot} was not finished: it gets the share's properties");
        self.keep_snapshot(snapshot, &own.properties)?;
        Ok(own.properties.clone())
    }

    fn load<T: DeserializeOwned + Default>(&self, key: &str) -> Result<Option<T>, StoreError> {
        match self.share.state().get(Drawer::Share, key) {
            Err(StoreError::Damaged { what, why }) => {
                log::error!("share {}: {what} is damaged: {why}", self.share.name());
                Ok(Some(T::default()))
            }
            loaded => loaded,
        }
    }

    fn keep<T: Serialize>(&self, key: &str, value: &T) -> Result<(), StoreError> {
        self.share.state().put(Drawer::Share, key, value, Durability::Synced)
    }

    fn drop_entry(&self, key: &str) -> Result<(), StoreError> {
        self.share.state().remove(Drawer::Share, key, Durability::Synced).map(|_| ())
    }
}

/// The key of a part of the share, or of a snapshot.
fn entry(part: &str, snapshot: Option<&SnapshotName>) -> String {
    snapshot.map_or_else(|| part.to_owned(), |snapshot| format!("{part}-{snapshot}"))
}
