//! One share: its directory, its files in use, its state on disk.
//!
//! No other file sees the fields: each group of them is kept by one file here, and everything else
//! goes through its methods.
//!
//! ```text
//!   name_lock    the name lock; whether the share is served
//!   locate       find, lock, check again: from a name to its file's lock
//!   disk         the directory, with a count of the changes of names
//!   deletion     the delete mark, the removal of names
//!   records      metadata records of files
//!   leases       leases of files on disk
//!   permissions  security descriptors by key
//!   releases     waiting for a release
//!   changes      notices to listeners that keep cached copies or hand out descriptors
//! ```

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use changes::{CloseListeners, Observers};
use disk::Disk;
use name_lock::NameLock;
use permissions::Drafts;
use releases::Releases;

use super::error::{FileError, Result};
use super::opens::open::Handle;
use super::opens::table::{Latched, OpenTable};
use super::requests::copy::RunningCopies;
use crate::clock::TimeSource;
use crate::disk::StateDir;
use crate::file::rules::{Denial, SharePath};
use crate::file::store::share::{Births, Case, Granularity, Records, ShareDir};
use crate::journal::{AccountJournal, Event, FileEvent, Happening};
use crate::rules::{FileId, HandleId, Owner, Spelled, Timestamp};
use crate::sync::{AtomicU64, Mutex, Ordering};

mod changes;
mod deletion;
mod disk;
mod leases;
mod locate;
mod name_lock;
mod permissions;
mod records;
mod releases;

pub use changes::{ChangeNotice, LISTENERS_MAX};
pub(crate) use locate::{Missed, Seen, TryResult, retry};
pub use permissions::DraftPermission;
pub use releases::{Attempt, RELEASE_LOOK, RELEASE_WAIT};
pub(crate) use releases::{Target, awaits_release};

/// Bits of a handle id that count within one run; the rest is the number of the run.
const HANDLE_BITS: u32 = 40;

/// How a share behaves.
#[derive(Clone, Copy, Debug)]
pub struct ShareOptions {
    /// Whether names differ by case alone.
    pub case: Case,
    /// Permission bits of files made through the engine by callers that name none.
    pub file_mode: u32,
    /// Permission bits of new directories.
    pub dir_mode: u32,
    /// Flush each REST write to the disk before it is acknowledged.
    pub sync_always: bool,
    /// How the faces spell a refusal, for the journal.
    pub spelled: fn(&Denial) -> Spelled,
}

impl Default for ShareOptions {
    fn default() -> Self {
        Self {
            case: Case::Insensitive,
            file_mode: 0o666,
            dir_mode: 0o777,
            sync_always: false,
            spelled: |_| Spelled::default(),
        }
    }
}

/// A share that is being served.
pub struct Share {
    name: Arc<str>,
    options: ShareOptions,
    /// Shared by all who look names up; taken alone to rename a directory.
    name_lock: NameLock,
    disk: Disk,
    /// How many entries are being made just now; see [`Share::find`].
    making: AtomicU64,
    table: OpenTable,
    next_handle: AtomicU64,
    releases: Releases,
    /// State on disk that is not in the files: marks, leases, permissions, properties.
    state: StateDir,
    /// How many names are delete pending; read without a lock on every lookup of the mount.
    pending: AtomicU64,
    /// Held while a file's lease is changed.
    lease_changes: Mutex<()>,
    records: Records,
    /// Whether the kernel's change times alone make each change a new `ETag`.
    granularity: Granularity,
    copies: RunningCopies,
    /// It has, or had, snapshots that files may be compared with.
    snapshotted: AtomicBool,
    /// Permissions of requests under way.
    drafts: Drafts,
    clock: Arc<dyn TimeSource>,
    journal: AccountJournal,
    listeners: CloseListeners,
    observers: Observers,
}

impl Share {
    /// Opens the directory `root` as the share `name`, with its state in `state`. The directory
    /// itself is not changed. What a killed predecessor left half done is finished first.
    pub fn open_directory(
        name: &str,
        root: &Path,
        state: &Path,
        options: ShareOptions,
        clock: Arc<dyn TimeSource>,
        journal: AccountJournal,
    ) -> Result<Self> {
        Self::open_with(name, root, StateDir::open(state)?, options, clock, journal)
    }

    /// As [`Share::open_directory`], with a state folder that is open.
    pub(crate) fn open_with(
        name: &str,
        root: &Path,
        state: StateDir,
        options: ShareOptions,
        clock: Arc<dyn TimeSource>,
        journal: AccountJournal,
    ) -> Result<Self> {
        let epoch = state.next_epoch()?;
        let dir = ShareDir::open(root, options.case)?;
        let share = Self {
            name: name.into(),
            options,
            name_lock: NameLock::default(),
            granularity: records::granularity(&dir)?,
            disk: Disk::new(dir),
            making: AtomicU64::new(0),
            table: OpenTable::default(),
            next_handle: AtomicU64::new((u64::from(epoch) << HANDLE_BITS) | 1),
            releases: Releases::default(),
            records: Records::beside(&state)?,
            state,
            pending: AtomicU64::new(0),
            lease_changes: Mutex::default(),
            copies: RunningCopies::default(),
            snapshotted: AtomicBool::new(false),
            drafts: Drafts::default(),
            clock,
            journal,
            listeners: CloseListeners::default(),
            observers: Observers::default(),
        };
        share.log_lacks();
        // Opens and locks died with their process; deletions that were promised, and leases, did
        // not.
        share.finish_deletions()?;
        share.load_leases()?;
        Ok(share)
    }

    /// Logs, once for all shares, what the file system lacks.
    fn log_lacks(&self) {
        static LOGGED: AtomicBool = AtomicBool::new(false);
        let lacks = self.lacks();
        if !lacks.is_empty() && !LOGGED.swap(true, std::sync::atomic::Ordering::Relaxed) {
            for lack in lacks {
                log::warn!("{}: {lack}", self.disk.root_path().display());
            }
        }
    }

    /// The features that the file system below lacks, a line each; see docs/troubleshooting.md.
    pub fn lacks(&self) -> Vec<&'static str> {
        let births = match self.disk.births() {
            Births::Kept => None,
            Births::Missing => Some(
                "the file system keeps no creation times: files are told apart by their inode \
                 numbers, and a lease keeps a descriptor open",
            ),
            Births::MovedByCopyUp => Some(
                "this is overlayfs: the first opening of a file for writing changes its creation \
                 time and its ETag. Put the data directory on a volume to avoid that",
            ),
        };
        let times = self.has_coarse_times().then_some(
            "the file system's times are coarse: latchfs counts writes for the ETag, so that \
             programs write without kernel passthrough. Two writes made directly in the data \
             directory may leave one ETag",
        );
        births.into_iter().chain(times).collect()
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub fn options(&self) -> &ShareOptions {
        &self.options
    }

    /// Its directory. A change of a name is made under the lock of the file.
    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Its files in use. A caller that has a name locks the file by [`locate`], which checks the
    /// name under the lock.
    pub(crate) fn table(&self) -> &OpenTable {
        &self.table
    }

    /// How many files have opens, locks or leases.
    pub fn files_in_use(&self) -> usize {
        self.table.len()
    }

    /// Does `step` under the lock of the handle's file, with the name it was opened by.
    pub(crate) fn latched<T>(
        &self,
        handle: &Handle,
        step: impl FnOnce(&mut Latched, &SharePath) -> Result<T>,
    ) -> Result<T> {
        self.table.with_cell(handle.cell(), |latched| {
            let (_, path) = latched.state.get(handle.slot(), handle.id())?;
            let path = path.clone();
            step(latched, &path)
        })
    }

    pub(crate) fn next_handle(&self) -> HandleId {
        HandleId(self.next_handle.fetch_add(1, Ordering::Relaxed))
    }

    /// The epoch that the numbers of its handles begin with.
    pub(crate) fn epoch(&self) -> u32 {
        let next = self.next_handle.load(Ordering::Relaxed);
        u32::try_from(next >> HANDLE_BITS).unwrap_or(u32::MAX)
    }

    /// Its state folder, for what is kept of the share as a whole.
    pub(crate) fn state(&self) -> &StateDir {
        &self.state
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Share({}, {} files in use)", self.name, self.table.len())
    }
}

impl Share {
    /// The time now, by the clock that the share was opened with.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// True if grants and closes are noted too.
    pub(crate) fn notes_all(&self) -> bool {
        self.journal.journal().records_all()
    }

    /// Notes an event. That of an open has the identity of the file, whose lock the caller holds.
    pub(crate) fn note(
        &self,
        file: Option<FileId>,
        path: &SharePath,
        who: &Owner,
        what: Happening,
    ) {
        self.journal.push(Event::File(FileEvent {
            share: Arc::clone(self.name()),
            path: path.to_string(),
            file,
            who: who.clone(),
            what,
        }));
    }

    /// Notes a refusal, and passes the answer on.
    pub(crate) fn note_refusal<T>(
        &self,
        operation: &'static str,
        path: &SharePath,
        who: &Owner,
        answer: Result<T>,
    ) -> Result<T> {
        if let Err(FileError::Denied(denial)) = &answer {
            let cause = Box::new(denial.cause((self.options.spelled)(denial)));
            self.note(None, path, who, Happening::Refused { operation, cause });
        }
        answer
    }
}
