//! All shares of one server: which there are, and what is done to one as a whole.
//!
//! Decides that a name stands for at most one share at any moment: whoever makes, deletes or
//! restores a share claims its name first, and everybody else who comes by is told so at once
//! instead of waiting. Files inside are [`Share`]'s; codes and headers are REST's.
//!
//! ```text
//!   lifecycle    create, delete, restore, purge
//!   served       a share with what is kept of it as a whole
//!   properties   what that is; settings: reading and setting it
//!   lease        leases of shares and snapshots
//!   permission   security descriptors by key
//!   snapshot     taking and deleting snapshots; view: reading one
//!   list         all of them, page by page
//!   service      what the service as a whole was told
//! ```
//!
//! Locks: a share's `kept` before the map of names; the map never across disk access. Two flocks
//! are held: the data root's keeps another server away from the whole root, and each state
//! folder's keeps a share that somebody still holds from being opened a second time.
//!
//! Sources: FILEREST sections 5 to 8; LOCKING 4.3, 8.1; DESIGN "Data on disk".

mod error;
mod lease;
mod lifecycle;
mod list;
mod permission;
mod properties;
mod served;
mod service;
mod settings;
mod snapshot;
mod view;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

pub use error::{AccountError, AccountResult, ShareDenial};
pub use lifecycle::DeleteSnapshots;
pub use list::{Deleted, LIST_MAX, ListOptions, ShareInfo, SharePage};
pub(super) use permission::inherited_permission_key;
pub use permission::{
    PERMISSION_BYTES_MAX, PERMISSION_HEADER_BYTES_MAX, Permission, PermissionFormat,
};
pub use properties::{
    AccessTier, NewShare, POLICIES_MAX, POLICY_ID_MAX, PropertyChanges, QUOTA_GIB_DEFAULT,
    QUOTA_GIB_MAX, ShareProperties, ShareTag, ShareVersion, StoredPolicy,
};
pub use served::LeaseView;
pub use view::{SnapshotFile, SnapshotView};

// What arguments and answers are made of, as front ends see it.
pub use crate::store::{Control, ETag, Metadata, Progress, Record, SnapshotName};

use super::clock::{Clock, SystemClock};
use super::events::EventLog;
use super::share::{Share, ShareOptions};
use crate::core::lease::LeaseId;
use crate::core::name::check_share_name;
use crate::core::{Timestamp, stamp};
use crate::store::{DataRoot, SingleShare};
use crate::sync::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use served::Served;
use service::Service;

/// Days a deleted share can be restored, unless said otherwise: the service's default.
pub const RETENTION_DAYS_DEFAULT: u32 = 7;

/// How the shares of a server behave.
#[derive(Clone)]
pub struct EngineOptions {
    /// How each share behaves.
    pub share: ShareOptions,
    /// The clock: leases, times, retention.
    pub clock: Arc<dyn Clock>,
    /// Where events go.
    pub events: Arc<EventLog>,
    /// Days a deleted share can be restored; none: it is gone at once.
    pub retention_days: Option<u32>,
    /// How old a count of a share's bytes may be.
    pub usage_refresh: Duration,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            share: ShareOptions::default(),
            clock: Arc::new(SystemClock),
            events: Arc::new(EventLog::default()),
            retention_days: Some(RETENTION_DAYS_DEFAULT),
            usage_refresh: Duration::from_mins(1),
        }
    }
}

/// A share, or a snapshot of it, as a request names it.
#[derive(Clone, Copy, Debug)]
pub struct ShareRef<'a> {
    /// The share's name.
    pub name: &'a str,
    /// The snapshot, if it is one.
    pub snapshot: Option<&'a SnapshotName>,
    /// The lease ID that came with the request.
    pub lease_id: Option<LeaseId>,
}

impl<'a> ShareRef<'a> {
    /// The share of that name, no lease ID.
    pub fn new(name: &'a str) -> Self {
        Self { name, snapshot: None, lease_id: None }
    }

    /// A snapshot of it.
    #[must_use]
    pub fn at(self, snapshot: &'a SnapshotName) -> Self {
        Self { snapshot: Some(snapshot), ..self }
    }

    /// With a lease ID.
    #[must_use]
    pub fn with_lease(self, id: LeaseId) -> Self {
        Self { lease_id: Some(id), ..self }
    }
}

/// All shares of one server.
pub struct Engine {
    // The shares go before the locks of their home.
    shares: RwLock<BTreeMap<Arc<str>, Slot>>,
    /// Deleted shares that can be restored, by name and version.
    deleted: Mutex<BTreeMap<(String, String), Gone>>,
    service: Service,
    options: EngineOptions,
    home: Home,
}

/// Where the shares are.
enum Home {
    Root(DataRoot),
    Single(SingleShare),
}

/// What a name stands for.
#[derive(Clone)]
enum Slot {
    Served(Arc<Served>),
    /// Being made or restored.
    Coming,
    /// Being deleted.
    Going,
}

/// A deleted share.
struct Gone {
    when: Timestamp,
    properties: ShareProperties,
    /// Whoever still holds the share (a mount) gets the same one back when it is restored.
    share: Weak<Share>,
}

const POISON: &str = "nothing panics under the map of shares";

impl Engine {
    /// Opens the data root at `data`, made if missing, with all its shares. What a killed
    /// predecessor left half done is finished, and deleted shares past their time are purged.
    pub fn open(data: &Path, options: EngineOptions) -> AccountResult<Self> {
        let engine = Self::at(Home::Root(DataRoot::open(data)?), options)?;
        engine.load_deleted(data)?;
        engine.purge_expired()?;
        for name in engine.root()?.shares()? {
            let served = engine.open_served(&name, None)?;
            engine.set_slot(name.into(), Slot::Served(Arc::new(served)));
        }
        Ok(engine)
    }

    /// Serves the existing directory `dir` as the only share, with its state in `state` or in the
    /// user's state directory.
    pub fn serve_directory(
        name: &str,
        dir: &Path,
        state: Option<&Path>,
        options: EngineOptions,
    ) -> AccountResult<Self> {
        check_share_name(name).map_err(ShareDenial::InvalidResourceName)?;
        // A missing directory is no missing share: the caller named a path.
        let single = SingleShare::open(dir, state).map_err(AccountError::Root)?;
        let engine = Self::at(Home::Single(single), options)?;
        let served = engine.open_served(name, None)?;
        engine.set_slot(name.into(), Slot::Served(Arc::new(served)));
        Ok(engine)
    }

    fn at(home: Home, options: EngineOptions) -> AccountResult<Self> {
        let service = Service::open(&match &home {
            Home::Root(root) => root.account_path(),
            Home::Single(single) => single.account_path(),
        })?;
        let (shares, deleted) = (RwLock::default(), Mutex::default());
        Ok(Self { shares, deleted, service, options, home })
    }

    /// How its shares behave.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The folder of its own, outside every share: what belongs to the server as a whole.
    pub fn folder(&self) -> PathBuf {
        match &self.home {
            Home::Root(root) => root.folder(),
            Home::Single(single) => single.folder().to_owned(),
        }
    }

    /// The share of that name.
    pub fn share(&self, name: &str) -> AccountResult<Arc<Share>> {
        Ok(Arc::clone(&self.served(name)?.share))
    }

    /// The share, for an operation that changes something in it: a snapshot is refused, lease
    /// actions on its files included (LOCKING 2.2, 4.1).
    pub fn share_to_change(&self, at: &ShareRef<'_>) -> AccountResult<Arc<Share>> {
        let served = self.served(at.name)?;
        if let Some(snapshot) = at.snapshot {
            served.kept()?.known(snapshot)?;
            return Err(ShareDenial::ShareSnapshotOperationNotSupported.into());
        }
        Ok(Arc::clone(&served.share))
    }

    fn served(&self, name: &str) -> AccountResult<Arc<Served>> {
        check_share_name(name).map_err(ShareDenial::InvalidResourceName)?;
        match self.slots().get(name) {
            Some(Slot::Served(served)) => Ok(Arc::clone(served)),
            Some(Slot::Going) => Err(ShareDenial::ShareBeingDeleted.into()),
            Some(Slot::Coming) | None => Err(ShareDenial::ShareNotFound.into()),
        }
    }

    fn root(&self) -> AccountResult<&DataRoot> {
        match &self.home {
            Home::Root(root) => Ok(root),
            Home::Single(_) => Err(ShareDenial::OneDirectoryOnly.into()),
        }
    }

    fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    fn slots(&self) -> RwLockReadGuard<'_, BTreeMap<Arc<str>, Slot>> {
        self.shares.read().expect(POISON)
    }

    fn slots_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<Arc<str>, Slot>> {
        self.shares.write().expect(POISON)
    }

    fn set_slot(&self, name: Arc<str>, slot: Slot) {
        self.slots_mut().insert(name, slot);
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({} shares, {})", self.slots().len(), stamp::iso(self.now()))
    }
}
