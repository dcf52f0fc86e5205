//! The table of files in use: one cell per file, each with its own lock.
//!
//! Decides how a file's state is found, locked and dropped; the state itself is decided in the
//! rules. A file that is not in use has no cell. A cell is *retired* under its own lock when its
//! state is empty, and then removed from the map: a caller that still holds the `Arc` sees the mark
//! and looks the file up again.
//!
//! Order of locks: a directory before an entry that is made in it, then by identity. The map's
//! guards are never held while a cell is locked.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::os::fd::OwnedFd;

use dashmap::DashMap;

use super::waiting::LockWaiters;
use crate::disk::StoreError;
use crate::disk::non_blocking::{check_may_wait, check_not_given_up, is_non_blocking};
use crate::file::rules::file::FileState;
use crate::rules::FileId;
use std::sync::{Arc, TryLockError};
use std::thread;

use crate::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, front_end};

const POISON: &str = "no step of the rules panics";

/// How often a latch is tried in non-blocking mode. Most steps under it take a microsecond or two:
/// to go on trying costs less than another thread, and ends the wait for a release sooner.
const TRIES_MAX: u32 = 64;

/// The name of a latch in assertions.
const LOCK: &str = "the lock of a file";

/// The name of a data latch in assertions.
const DATA_LATCH: &str = "the data latch of a file";

/// One file in use.
#[derive(Debug)]
pub struct FileCell {
    pub id: FileId,
    latch: Mutex<Latched>,
    /// The data latch: held for reading while bytes are read for a request, for writing while one
    /// request's bytes are written, so that no request sees half of another's range (S3). Taken
    /// after the latch.
    data: RwLock<()>,
}

/// The state that the latch guards.
#[derive(Debug, Default)]
pub struct Latched {
    /// The rules' view of the file.
    pub state: FileState,
    pub waiting: LockWaiters,
    /// Keeps the inode number of a leased file in use; see `Share::anchor_of`.
    pub anchor: Option<OwnedFd>,
    /// A descriptor of the file, once a name was removed while it had opens: there may be no path
    /// to the file.
    pub nameless: Option<Arc<OwnedFd>>,
    /// Readers that outlast their request's step and need the data latch of this very cell.
    pins: u16,
    /// All opens of the file are being ended: no lock request through a remaining open is granted.
    pub ending: bool,
}

/// The number of pins that says that the cell is retired.
const RETIRED: u16 = u16::MAX;

impl Latched {
    /// Keeps the cell until [`OpenTable::unpin`].
    pub fn pin(&mut self) {
        self.pins += 1;
    }

    fn unpin(&mut self) {
        self.pins = self.pins.checked_sub(1).expect("a pin is taken back once");
    }

    fn is_retired(&self) -> bool {
        self.pins == RETIRED
    }
}

impl FileCell {
    fn new(id: FileId) -> Self {
        Self { id, latch: Mutex::default(), data: RwLock::default() }
    }

    /// Locks the file's state, and waits for the lock: for threads that may, and for changes that
    /// have begun. Only for callers that hold an open of the file: an idle cell may be retired.
    pub fn latch_waiting(&self) -> MutexGuard<'_, Latched> {
        front_end::assert_committed(LOCK);
        self.wait()
    }

    /// Locks the file's state. In non-blocking mode [`StoreError::WouldWait`], if another thread
    /// has the lock for longer than a step of the rules takes.
    pub fn latch(&self) -> Result<MutexGuard<'_, Latched>, StoreError> {
        front_end::assert_lock_allowed(LOCK);
        check_not_given_up()?;
        if !is_non_blocking() {
            return Ok(self.wait());
        }
        for _ in 0..TRIES_MAX {
            if let Some(latched) = self.try_latch() {
                return Ok(latched);
            }
            thread::yield_now();
        }
        check_may_wait()?;
        Ok(self.wait())
    }

    /// Locks the file's state if no other thread has the lock, in any mode.
    pub fn try_latch(&self) -> Option<MutexGuard<'_, Latched>> {
        match self.latch.try_lock() {
            Ok(latched) => Some(latched),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => panic!("{POISON}"),
        }
    }

    /// The data latch, to read bytes. In non-blocking mode [`StoreError::WouldWait`], if another
    /// thread writes.
    pub fn lock_to_read(&self) -> Result<RwLockReadGuard<'_, ()>, StoreError> {
        front_end::assert_lock_allowed(DATA_LATCH);
        match self.data.try_read() {
            Ok(reading) => Ok(reading),
            Err(TryLockError::WouldBlock) => {
                check_may_wait()?;
                Ok(self.data.read().expect(POISON))
            }
            Err(TryLockError::Poisoned(_)) => panic!("{POISON}"),
        }
    }

    /// The data latch, to read bytes, if no other thread writes; in any mode.
    pub fn try_lock_to_read(&self) -> Option<RwLockReadGuard<'_, ()>> {
        match self.data.try_read() {
            Ok(reading) => Some(reading),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => panic!("{POISON}"),
        }
    }

    /// The data latch, to write bytes. In non-blocking mode [`StoreError::WouldWait`], if another
    /// thread reads or writes.
    pub fn lock_to_write(&self) -> Result<RwLockWriteGuard<'_, ()>, StoreError> {
        front_end::assert_lock_allowed(DATA_LATCH);
        match self.data.try_write() {
            Ok(writing) => Ok(writing),
            Err(TryLockError::WouldBlock) => {
                check_may_wait()?;
                Ok(self.data.write().expect(POISON))
            }
            Err(TryLockError::Poisoned(_)) => panic!("{POISON}"),
        }
    }

    fn wait(&self) -> MutexGuard<'_, Latched> {
        // A panic under the latch is a broken invariant; going on could grant what is held.
        self.latch.lock().expect(POISON)
    }
}

/// A cell as the key it is found by: its identity is not kept twice, which would be a tenth of
/// what an open costs.
#[derive(Debug)]
struct ById(Arc<FileCell>);

impl Borrow<FileId> for ById {
    fn borrow(&self) -> &FileId {
        &self.0.id
    }
}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ById {}

/// All files of one share that are in use.
#[derive(Debug, Default)]
pub struct OpenTable {
    cells: DashMap<ById, ()>,
}

impl OpenTable {
    /// Does `step` under the lock of the file, making its cell if there is none. In non-blocking
    /// mode [`StoreError::WouldWait`], if another thread has the lock.
    pub fn with<T>(
        &self,
        id: FileId,
        step: impl FnOnce(&Arc<FileCell>, &mut Latched) -> T,
    ) -> Result<T, StoreError> {
        loop {
            let cell = self.cell(id);
            let mut latched = cell.latch()?;
            if latched.is_retired() {
                continue;
            }
            let answer = step(&cell, &mut latched);
            self.retire_if_idle(&cell, &mut latched);
            return Ok(answer);
        }
    }

    /// Does `step` under the locks of two different files, taken in the order of identities.
    pub fn with_two<T>(
        &self,
        one: FileId,
        other: FileId,
        step: impl FnOnce(&mut Latched, &mut Latched) -> T,
    ) -> Result<T, StoreError> {
        assert_ne!(one, other, "one file is locked once");
        if one < other {
            self.with(one, |_, one| self.with(other, |_, other| step(one, other)))?
        } else {
            self.with(other, |_, other| self.with(one, |_, one| step(one, other)))?
        }
    }

    /// Does `step` under the lock of a cell that a handle refers to, and forgets the cell if
    /// nothing is left. On a retired cell every handle is closed, and the state says so. In
    /// non-blocking mode [`StoreError::WouldWait`], if another thread has the lock.
    pub fn with_cell<T>(
        &self,
        cell: &Arc<FileCell>,
        step: impl FnOnce(&mut Latched) -> T,
    ) -> Result<T, StoreError> {
        Ok(self.step_on(cell, cell.latch()?, step))
    }

    /// As [`OpenTable::with_cell`], for threads that may wait and for changes that have begun.
    pub fn with_cell_waiting<T>(
        &self,
        cell: &Arc<FileCell>,
        step: impl FnOnce(&mut Latched) -> T,
    ) -> T {
        self.step_on(cell, cell.latch_waiting(), step)
    }

    fn step_on<T>(
        &self,
        cell: &Arc<FileCell>,
        mut latched: MutexGuard<'_, Latched>,
        step: impl FnOnce(&mut Latched) -> T,
    ) -> T {
        let answer = step(&mut latched);
        if !latched.is_retired() {
            self.retire_if_idle(cell, &mut latched);
        }
        answer
    }

    /// Takes one [`Latched::pin`] back; waits for the file's lock.
    pub fn unpin(&self, cell: &Arc<FileCell>) {
        front_end::to_the_end(|| self.with_cell_waiting(cell, Latched::unpin));
    }

    /// Takes one [`Latched::pin`] back; false if another thread has the file's lock.
    pub fn try_unpin(&self, cell: &Arc<FileCell>) -> bool {
        let latched = cell.try_latch();
        latched.map(|latched| self.step_on(cell, latched, Latched::unpin)).is_some()
    }

    /// The cell of a file; `None` if the file is not in use.
    pub fn get(&self, id: FileId) -> Option<Arc<FileCell>> {
        self.cells.get(&id).map(|entry| Arc::clone(&entry.key().0))
    }

    /// All cells, for reports and for operations on a whole subtree.
    pub fn cells(&self) -> Vec<Arc<FileCell>> {
        self.cells.iter().map(|entry| Arc::clone(&entry.key().0)).collect()
    }

    /// How many files are in use.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    fn cell(&self, id: FileId) -> Arc<FileCell> {
        if let Some(cell) = self.get(id) {
            return cell;
        }
        // Or the one that another thread made in between.
        let entry = self.cells.entry(ById(Arc::new(FileCell::new(id)))).or_insert(());
        Arc::clone(&entry.key().0)
    }

    fn retire_if_idle(&self, cell: &Arc<FileCell>, latched: &mut Latched) {
        if latched.state.is_idle() && latched.waiting.is_empty() && latched.pins == 0 {
            latched.pins = RETIRED;
            latched.nameless = None;
            // A handle of a share that was replaced may be given to the one in its place.
            self.cells.remove_if(&cell.id, |known, ()| Arc::ptr_eq(&known.0, cell));
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_file_has_one_cell_however_many_ask_for_it_at_once() {
        let table = OpenTable::default();
        let id = FileId { ino: 1, born: 1 };
        for _ in 0..200 {
            let cells: Vec<_> = thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| table.cell(id))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(cells.iter().all(|cell| Arc::ptr_eq(cell, &cells[0])));
            table.with(id, |_, _| ()).unwrap();
            assert_eq!(table.len(), 0);
        }
    }

    #[test]
    fn a_file_in_use_takes_little_room() {
        // Two counters of the `Arc`, and what the allocator adds: 216 bytes.
        assert!(size_of::<FileCell>() <= 192, "{}", size_of::<FileCell>());
    }
}
