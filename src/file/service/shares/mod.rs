//! All shares of one server: which there are, and what is done to one as a whole.
//!
//! Decides that a name belongs to at most one share at any moment: an operation that creates,
//! deletes or restores a share claims the name first, and other operations on the name are refused
//! at once instead of waiting. The files inside are in [`Share`]; codes and headers are decided by
//! REST.
//!
//! ```text
//!   lifecycle    create, delete, restore, purge
//!   served       a share with what is kept of it as a whole
//!   properties   what that is; settings: reading and setting it, leases
//!   permission   security descriptors by key
//!   snapshot     taking and deleting snapshots; view: reading one
//!   list         all of them, page by page
//!   stamps       what is made of the time and must not come again
//!   followed     the share of a name, also after another has taken the name
//!   replace      all shares at once, by a reset or a restore
//! ```
//!
//! Locks: `replacing`, then a share's `kept` or the names that are followed, then the map of names;
//! the map never across disk access. Two flocks are held: the data root's keeps another server away
//! from the whole root, and each state folder's keeps a share that is still referred to from being
//! opened a second time.

mod error;
mod followed;
mod lifecycle;
mod list;
mod permission;
mod properties;
mod replace;
mod served;
mod settings;
mod snapshot;
mod stamps;
mod view;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

pub use error::{FileServiceError, FileServiceResult, ShareDenial};
pub use followed::{Followed, Follower};
pub use lifecycle::DeleteShareSnapshots;
pub use list::{LIST_MAX, ListOptions, ShareDeletion, ShareInfo, SharePage};
pub(crate) use permission::inherited_permission_key;
pub use permission::{
    PERMISSION_BYTES_MAX, PERMISSION_HEADER_BYTES_MAX, PermissionFormat, SecurityDescriptor,
};
pub use properties::{
    AccessTier, NewShare, Protocol, QUOTA_GIB_DEFAULT, QUOTA_GIB_MAX, ShareChanges,
    ShareProperties, ShareTag, ShareVersion,
};
pub(crate) use replace::SharesPart;
pub use served::LeaseView;
pub use view::{EarlierFile, SnapshotView};

// What arguments and answers are made of, as front ends see it.
pub use crate::file::store::share::{CloneProgress, Control, ETag, Metadata, Record, SnapshotName};

pub use super::share::DraftPermission;

use super::share::{Share, ShareOptions};
use crate::clock::TimeSource;
use crate::file::rules::Denial;
use crate::file::store::root::{ShareRoot, SingleShare};
use crate::journal::AccountJournal;
use crate::rules::lease::LeaseId;
use crate::rules::name::check_resource_name;
use crate::rules::{Cause, Timestamp, time};
use crate::sync::{AtomicU64, Mutex, Ordering, RwLock, RwLockReadGuard, RwLockWriteGuard};
use served::Served;
use stamps::Stamps;

/// Days a deleted share can be restored, unless said otherwise: the service's default.
pub const RETENTION_DAYS_DEFAULT: u32 = 7;

/// How the shares of a server behave.
#[derive(Clone)]
pub struct FileOptions {
    /// How each share behaves.
    pub share: ShareOptions,
    /// Days a deleted share can be restored; none: it is gone at once.
    pub retention_days: Option<u32>,
    /// How old a count of a share's bytes may be.
    pub usage_refresh: Duration,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            share: ShareOptions::default(),
            retention_days: Some(RETENTION_DAYS_DEFAULT),
            usage_refresh: Duration::from_mins(1),
        }
    }
}

/// A share, or a snapshot of it, as a request names it.
#[derive(Clone, Copy, Debug)]
pub struct ShareRef<'a> {
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
}

/// All shares of one server.
pub struct FileService {
    // The shares go before the locks of their home.
    shares: RwLock<BTreeMap<Arc<str>, ShareSlot>>,
    /// Deleted shares that can be restored, by name and version.
    deleted: Mutex<BTreeMap<(String, String), Gone>>,
    /// The last deletions, oldest first.
    deleted_lately: Mutex<VecDeque<(String, Timestamp)>>,
    /// Held shared to create, delete or restore a share or a snapshot; held exclusively to replace
    /// all shares. Taken before all other locks.
    replacing: RwLock<()>,
    /// Names whose shares have followers.
    followed: Mutex<BTreeMap<String, Weak<Followed>>>,
    /// `ETag`s of shares, and names of snapshots.
    tags: Stamps,
    snapshot_stamps: Stamps,
    /// New shares have handles with higher epochs.
    epoch_floor: AtomicU64,
    /// Shares that are not served since a file of their state is damaged, with a note on each.
    left_out: BTreeMap<String, String>,
    options: FileOptions,
    clock: Arc<dyn TimeSource>,
    journal: AccountJournal,
    home: Home,
}

/// Where the shares are.
enum Home {
    Root(ShareRoot),
    Single(SingleShare),
}

/// The state of a share's name.
#[derive(Clone)]
enum ShareSlot {
    Served(Arc<Served>),
    /// Being made or restored.
    Coming,
    Going,
}

impl ShareSlot {
    /// The share, if it is served.
    fn served(&self) -> Option<Arc<Served>> {
        match self {
            Self::Served(served) => Some(Arc::clone(served)),
            Self::Coming | Self::Going => None,
        }
    }
}

struct Gone {
    when: Timestamp,
    properties: ShareProperties,
    /// The share, while a mount still refers to it: a restore serves the same one again.
    share: Weak<Share>,
}

const POISON: &str = "nothing panics under the map of shares";

/// A moment as a stamp, in units of 100 ns.
fn ticks_of(moment: Timestamp) -> u64 {
    u64::try_from(moment.0 / time::TICK_NANOS).unwrap_or(0)
}

impl FileService {
    /// Opens the shares in `data`, made if missing, with their state in a hidden folder there.
    pub fn open(
        data: &Path,
        options: FileOptions,
        clock: Arc<dyn TimeSource>,
        journal: AccountJournal,
    ) -> FileServiceResult<Self> {
        Self::with_root(ShareRoot::open(data)?, options, clock, journal)
    }

    /// Opens the shares in `files` with their state in `state`.
    pub fn open_at(
        files: &Path,
        state: &Path,
        options: FileOptions,
        clock: Arc<dyn TimeSource>,
        journal: AccountJournal,
    ) -> FileServiceResult<Self> {
        Self::with_root(ShareRoot::open_at(files, state)?, options, clock, journal)
    }

    /// Finishes what a killed predecessor left half done, purges deleted shares past their time,
    /// and opens all others.
    fn with_root(
        root: ShareRoot,
        options: FileOptions,
        clock: Arc<dyn TimeSource>,
        journal: AccountJournal,
    ) -> FileServiceResult<Self> {
        let folder = root.folder().to_owned();
        let epoch_floor = root.epoch_floor()?;
        let mut service = Self::at(Home::Root(root), options, clock, journal);
        service.epoch_floor.store(epoch_floor.into(), Ordering::Relaxed);
        service.load_deleted(&folder)?;
        service.purge_expired()?;
        for name in service.root()?.shares()? {
            match service.open_served(&name, None) {
                Ok(served) => service.set_slot(name.into(), ShareSlot::Served(Arc::new(served))),
                Err(error) => {
                    // One damaged file must not keep all other shares and services away.
                    let Some(damage) = error.damage() else { return Err(error) };
                    let note = format!(
                        "share {name} is not served: {damage}. Move that file away and start again"
                    );
                    log::error!("{note}");
                    service.left_out.insert(name, note);
                }
            }
        }
        Ok(service)
    }

    /// The shares that are not served since a file of their state is damaged, with a note on each.
    pub fn left_out(&self) -> &BTreeMap<String, String> {
        &self.left_out
    }

    /// Serves the existing directory `dir` as the only share, with its state in `state` or in the
    /// user's state directory.
    pub fn serve_directory(
        name: &str,
        dir: &Path,
        state: Option<&Path>,
        options: FileOptions,
        clock: Arc<dyn TimeSource>,
        journal: AccountJournal,
    ) -> FileServiceResult<Self> {
        check_resource_name(name).map_err(ShareDenial::Name)?;
        // A missing directory is no missing share: the caller named a path.
        let single = SingleShare::open(dir, state).map_err(FileServiceError::Root)?;
        let engine = Self::at(Home::Single(single), options, clock, journal);
        let served = engine.open_served(name, None)?;
        engine.set_slot(name.into(), ShareSlot::Served(Arc::new(served)));
        Ok(engine)
    }

    fn at(
        home: Home,
        options: FileOptions,
        clock: Arc<dyn TimeSource>,
        journal: AccountJournal,
    ) -> Self {
        Self {
            clock,
            journal,
            shares: RwLock::default(),
            deleted: Mutex::default(),
            deleted_lately: Mutex::default(),
            replacing: RwLock::default(),
            followed: Mutex::default(),
            tags: Stamps::default(),
            snapshot_stamps: Stamps::default(),
            epoch_floor: AtomicU64::new(0),
            left_out: BTreeMap::new(),
            options,
            home,
        }
    }

    /// Where the state of the account's services is kept.
    pub fn services_path(&self) -> PathBuf {
        match &self.home {
            Home::Root(root) => root.services_path(),
            Home::Single(single) => single.services_path(),
        }
    }

    /// The clock of the server: leases, times, retention.
    pub fn clock(&self) -> &Arc<dyn TimeSource> {
        &self.clock
    }

    /// The journal of the server, for rows of this account.
    pub fn journal(&self) -> &AccountJournal {
        &self.journal
    }

    /// What the journal keeps of a refusal.
    pub fn cause(&self, denial: &Denial) -> Cause {
        denial.cause((self.options.share.spelled)(denial))
    }

    /// How its shares behave.
    pub fn options(&self) -> &FileOptions {
        &self.options
    }

    /// The folder of its own, outside every share: what belongs to the server as a whole.
    pub fn folder(&self) -> PathBuf {
        match &self.home {
            Home::Root(root) => root.folder().to_owned(),
            Home::Single(single) => single.folder().to_owned(),
        }
    }

    /// The share of that name.
    pub fn share(&self, name: &str) -> FileServiceResult<Arc<Share>> {
        Ok(Arc::clone(&self.served(name)?.share))
    }

    /// The share, for an operation that changes something in it: a snapshot is refused, lease
    /// actions on its files included.
    pub fn share_to_change(&self, at: &ShareRef<'_>) -> FileServiceResult<Arc<Share>> {
        let served = self.served(at.name)?;
        if let Some(snapshot) = at.snapshot {
            served.kept()?.known(snapshot)?;
            return Err(ShareDenial::ShareSnapshotOperationNotSupported.into());
        }
        Ok(Arc::clone(&served.share))
    }

    fn served(&self, name: &str) -> FileServiceResult<Arc<Served>> {
        check_resource_name(name).map_err(ShareDenial::Name)?;
        match self.slots().get(name) {
            Some(ShareSlot::Served(served)) => Ok(Arc::clone(served)),
            Some(ShareSlot::Going) => Err(ShareDenial::ShareBeingDeleted.into()),
            Some(ShareSlot::Coming) | None => Err(ShareDenial::ShareNotFound.into()),
        }
    }

    fn root(&self) -> FileServiceResult<&ShareRoot> {
        match &self.home {
            Home::Root(root) => Ok(root),
            Home::Single(_) => Err(ShareDenial::OneDirectoryOnly.into()),
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The properties of a share that is made now.
    fn new_properties(&self, new: NewShare) -> Result<ShareProperties, ShareDenial> {
        let mut properties = new.properties(self.now())?;
        properties.tag = properties.tag.stamped(&self.tags);
        Ok(properties)
    }

    /// The time that the next snapshot is called after.
    fn snapshot_time(&self) -> Timestamp {
        let ticks = self.snapshot_stamps.next(ticks_of(self.now()));
        let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
        Timestamp(ticks.saturating_mul(time::TICK_NANOS))
    }

    fn slots(&self) -> RwLockReadGuard<'_, BTreeMap<Arc<str>, ShareSlot>> {
        self.shares.read().expect(POISON)
    }

    fn slots_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<Arc<str>, ShareSlot>> {
        self.shares.write().expect(POISON)
    }

    fn set_slot(&self, name: Arc<str>, slot: ShareSlot) {
        self.slots_mut().insert(name, slot);
    }
}
