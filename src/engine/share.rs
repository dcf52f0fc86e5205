//! One share: its directory, its table of files in use, its state on disk.
//!
//! Decides how names and files are kept together while others act: every change of a name is
//! made under the lock of the file it belongs to, and raises the share's generation before that
//! lock is let go. Whoever looked a name up, took the lock and finds the generation unchanged
//! holds the file that the name stands for. A file that is being made is found only once its
//! maker has it open ([`Share::find`]). Renaming a directory moves many names at once and
//! takes the share's name lock alone; everything else shares it.

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use super::changes::Observers;
use super::clock::Clock;
use super::copy::RunningCopies;
use super::error::{Error, Result};
use super::events::{Event, EventLog, Happening};
use super::force_close::Listeners;
use super::table::Table;
use crate::core::create::Target;
use crate::core::{Attributes, Denial, FileId, HandleId, Owner, SharePath};
use crate::store::{
    Case, Drawer, Durability, Found, Granularity, Kind, OpenFor, Record, Records, ShareDir, Stat,
    StateDir, StoreError,
};
use crate::sync::{AtomicU64, Ordering, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// How often a name may change under a caller before it is told that it is gone.
pub(super) const NAME_RETRIES_MAX: u32 = 64;

/// Bits of a handle id that count within one run; the rest is the number of the run.
const HANDLE_BITS: u32 = 40;

/// How a share behaves.
#[derive(Clone, Copy, Debug)]
pub struct ShareOptions {
    /// Whether names differ by case alone.
    pub case: Case,
    /// Permission bits of files made through the engine by callers that name none.
    pub file_mode: u32,
    /// The same for directories.
    pub dir_mode: u32,
    /// Flush each REST write to the disk before it is acknowledged.
    pub sync_always: bool,
}

impl Default for ShareOptions {
    fn default() -> Self {
        Self { case: Case::Insensitive, file_mode: 0o666, dir_mode: 0o777, sync_always: false }
    }
}

/// A share that is being served.
pub struct Share {
    name: Arc<str>,
    pub(super) options: ShareOptions,
    pub(super) dir: ShareDir,
    pub(super) records: Records,
    pub(super) disk_state: StateDir,
    pub(super) table: Table,
    /// Shared by all who look names up; taken alone to rename a directory.
    names: RwLock<Standing>,
    generation: AtomicU64,
    /// How many entries are being made just now.
    making: AtomicU64,
    next_handle: AtomicU64,
    /// Whether the kernel's change times alone make each change a new `ETag`.
    pub(super) granularity: Granularity,
    /// How many names are delete pending; read without a lock on every lookup of the mount.
    pending: AtomicU64,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) events: Arc<EventLog>,
    pub(super) copies: RunningCopies,
    pub(super) listeners: Listeners,
    pub(super) observers: Observers,
}

/// Whether the share can still be acted on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// It is served.
    Served,
    /// It was deleted while somebody still held it.
    Deleted,
}

impl Standing {
    fn check(self) -> Result<()> {
        match self {
            Self::Served => Ok(()),
            Self::Deleted => Err(Denial::ShareDeleted.into()),
        }
    }
}

/// What a step that met a changed name wants.
pub(super) enum Attempt<T> {
    /// Done, one way or the other.
    Done(Result<T>),
    /// The name stands for another file now: look again.
    Again,
}

impl Share {
    /// Opens the directory `root` as the share `name`, with its state in `state`. The directory
    /// itself is not changed. What a killed predecessor left half done is finished first.
    pub fn open_directory(
        name: &str,
        root: &Path,
        state: &Path,
        options: ShareOptions,
        clock: Arc<dyn Clock>,
        events: Arc<EventLog>,
    ) -> Result<Self> {
        let disk_state = StateDir::open(state)?;
        let epoch = disk_state.next_epoch()?;
        let dir = ShareDir::open(root, options.case)?;
        let share = Self {
            name: name.into(),
            options,
            granularity: granularity(&dir)?,
            dir,
            records: Records::new(disk_state.path())?,
            disk_state,
            table: Table::default(),
            names: RwLock::new(Standing::Served),
            generation: AtomicU64::new(0),
            making: AtomicU64::new(0),
            next_handle: AtomicU64::new((u64::from(epoch) << HANDLE_BITS) | 1),
            pending: AtomicU64::new(0),
            clock,
            events,
            copies: RunningCopies::default(),
            listeners: Listeners::default(),
            observers: Observers::default(),
        };
        share.recover()?;
        Ok(share)
    }

    /// The share's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// How it behaves.
    pub fn options(&self) -> &ShareOptions {
        &self.options
    }

    /// How many files have opens, locks or leases.
    pub fn files_in_use(&self) -> usize {
        self.table.len()
    }

    pub(super) fn next_handle(&self) -> HandleId {
        HandleId(self.next_handle.fetch_add(1, Ordering::Relaxed))
    }

    /// The name lock, shared: names may be looked up, and files acted on. Refused once the share
    /// was deleted: its folder may be another share's by now.
    pub(super) fn names(&self) -> Result<RwLockReadGuard<'_, Standing>> {
        let names = self.names.read().expect("nothing panics under the name lock");
        names.check()?;
        Ok(names)
    }

    /// The name lock, alone: nobody else looks a name up meanwhile.
    pub(super) fn names_alone(&self) -> Result<RwLockWriteGuard<'_, Standing>> {
        let names = self.names.write().expect("nothing panics under the name lock");
        names.check()?;
        Ok(names)
    }

    /// A deleted share was restored: it is served again.
    pub(super) fn serve_again(&self) {
        *self.names.write().expect("nothing panics under the name lock") = Standing::Served;
    }

    /// Counts the changes of names so far.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Looks `path` up and does `step` with what was found, again while the name keeps changing.
    /// `step` locks the file and asks [`Share::is_still`] first.
    pub(super) fn with_name<T>(
        &self,
        path: &SharePath,
        mut step: impl FnMut(std::result::Result<Found, StoreError>, u64) -> Attempt<T>,
    ) -> Result<T> {
        for _ in 0..NAME_RETRIES_MAX {
            let generation = self.generation();
            match step(self.find(path), generation) {
                Attempt::Done(answer) => return answer,
                Attempt::Again => {}
            }
        }
        Err(Denial::NotFound.into())
    }

    /// Looks a name up for somebody who will act on it, and who holds no file's lock yet.
    ///
    /// A new entry is on disk a moment before its maker's open is in the table. Whoever finds it
    /// in between waits here for the maker, who holds the lock of the directory until both are
    /// there: nobody opens, deletes or moves a file before the one who made it has it open.
    pub(super) fn find(&self, path: &SharePath) -> std::result::Result<Found, StoreError> {
        let found = self.dir.lookup(path)?;
        if self.making.load(Ordering::SeqCst) > 0
            && let Some(parent) = found.path.parent()
            && let Ok(parent) = self.dir.lookup(&parent)
            && let Some(cell) = self.table.get(parent.stat.id)
        {
            drop(cell.latch());
        }
        Ok(found)
    }

    /// An entry is about to be made by the caller, who holds the lock of its directory until the
    /// guard is gone.
    pub(super) fn making(&self) -> Making<'_> {
        self.making.fetch_add(1, Ordering::SeqCst);
        Making(&self.making)
    }

    /// True if `path` still stands for the file `id`, whose lock the caller holds.
    pub(super) fn is_still(&self, path: &SharePath, id: FileId, generation: u64) -> bool {
        self.generation() == generation || self.dir.stat(path).is_ok_and(|stat| stat.id == id)
    }

    /// To be called after each change of a name, before the file's lock is let go.
    pub(super) fn names_changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The metadata record of an open file. One that lost its sidecar (a copy made directly in
    /// the directory) has a default one, and is named in the log.
    pub(super) fn load_record(&self, fd: &OwnedFd, id: FileId) -> Result<Record> {
        let mut record = match self.records.load(fd, id) {
            Err(StoreError::Damaged { what, why }) => {
                log::warn!("share {}: {what} is damaged: {why}", self.name);
                Record::default()
            }
            loaded => loaded?,
        };
        self.copies.end_if_dead(id, &mut record);
        Ok(record)
    }

    /// The metadata record of a file, a symbolic link or a special file. One that this process
    /// may not read has none to show.
    pub(super) fn record(&self, path: &SharePath, id: FileId) -> Result<Record> {
        let fd = self.dir.open_file(path, OpenFor::Path)?;
        match self.load_record(&fd, id) {
            Err(Error::Store(StoreError::PermissionDenied)) => Ok(Record::default()),
            loaded => loaded,
        }
    }

    /// Counts a change of the bytes made through a handle where the kernel's change times may
    /// not show it.
    pub(super) fn count_change(&self, fd: &OwnedFd, id: FileId) -> Result<()> {
        if self.granularity == Granularity::Coarse {
            let mut record = self.load_record(fd, id)?;
            record.changes = record.changes.wrapping_add(1);
            self.records.save(fd, id, &mut record)?;
        }
        Ok(())
    }

    /// What the rules want to know of an existing file.
    pub(super) fn target(&self, path: &SharePath, stat: &Stat) -> Result<Target> {
        let attributes = self.record(path, stat.id)?.attributes.unwrap_or_default();
        Ok(Target { directory: stat.kind == Kind::Directory, attributes })
    }

    pub(super) fn is_read_only(&self, path: &SharePath, id: FileId) -> Result<bool> {
        let attributes = self.record(path, id)?.attributes.unwrap_or_default();
        Ok(attributes.contains(Attributes::READ_ONLY))
    }

    /// Writes down that a name is delete pending: the promise outlives a killed process. Not
    /// flushed to the disk; after a power failure a file that was never removed is simply back.
    pub(super) fn remember_pending(&self, id: FileId, path: &SharePath) -> Result<()> {
        let entry = PendingEntry { id, path: path.clone() };
        let key = entry.key();
        // Not by `?`: what the state folder lacks is no answer about the file.
        let kept = self.disk_state.put(Drawer::Pending, &key, &entry, Durability::Cached);
        kept.map_err(Error::Store)?;
        self.pending.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Takes that back.
    pub(super) fn forget_pending(&self, id: FileId, path: &SharePath) -> Result<()> {
        let key = PendingEntry { id, path: path.clone() }.key();
        let removed = self.disk_state.remove(Drawer::Pending, &key, Durability::Cached);
        // A name that goes with the very close that marks it was never written down.
        if removed.map_err(Error::Store)? {
            self.pending.fetch_sub(1, Ordering::Release);
        }
        Ok(())
    }

    /// True if any name is delete pending.
    pub(super) fn has_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire) > 0
    }

    /// Removes a name whose file's lock the caller holds, in two steps: it was marked, now it is
    /// removed if it still is that file.
    pub(super) fn remove_name(&self, path: &SharePath, id: FileId, directory: bool) -> Result<()> {
        let removed =
            if directory { self.dir.remove_dir(path, id) } else { self.dir.remove_file(path, id) };
        self.names_changed();
        match removed {
            // Somebody took or replaced the name directly in the directory: it is not ours now.
            Ok(()) | Err(StoreError::NotFound | StoreError::Replaced) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Notes an event that is always kept.
    pub(super) fn note(&self, path: &SharePath, who: &Owner, what: Happening) {
        self.push_event(None, path, who, what);
    }

    /// Notes what became of an open of a file, whose lock the caller holds.
    pub(super) fn note_of(&self, file: FileId, path: &SharePath, who: &Owner, what: Happening) {
        self.push_event(Some(file), path, who, what);
    }

    fn push_event(&self, file: Option<FileId>, path: &SharePath, who: &Owner, what: Happening) {
        self.events.push(Event {
            seq: 0,
            time: self.clock.now(),
            share: Arc::clone(&self.name),
            path: path.clone(),
            file,
            who: who.clone(),
            what,
        });
    }

    /// Notes a refusal, and passes the answer on.
    pub(super) fn note_refusal<T>(
        &self,
        operation: &'static str,
        path: &SharePath,
        who: &Owner,
        answer: Result<T>,
    ) -> Result<T> {
        if let Err(Error::Denied(denial)) = &answer {
            self.note(path, who, Happening::Refused { operation, denial: denial.clone() });
        }
        answer
    }
}

/// How well change times tell changes apart here. Where nothing can be tried out nobody but us
/// knows of our changes, so they are counted.
fn granularity(dir: &ShareDir) -> Result<Granularity> {
    match Granularity::probe(dir.open_file(&SharePath::root(), OpenFor::Read)?) {
        Err(StoreError::ReadOnly | StoreError::PermissionDenied | StoreError::NoSpace) => {
            Ok(Granularity::Coarse)
        }
        probed => Ok(probed?),
    }
}

/// An entry is being made; see [`Share::find`].
pub(super) struct Making<'a>(&'a AtomicU64);

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Share({}, {} files in use)", self.name, self.table.len())
    }
}

/// A pending name as it is kept on disk.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct PendingEntry {
    pub id: FileId,
    pub path: SharePath,
}

impl PendingEntry {
    /// One file may have several pending names: the path is part of the key, as a checksum since
    /// it may be longer than a file name.
    fn key(&self) -> String {
        // FNV-1a: stable between builds, unlike the standard hasher.
        let hash = self.path.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        format!("{}-{}-{hash:016x}", self.id.ino, self.id.born)
    }
}
