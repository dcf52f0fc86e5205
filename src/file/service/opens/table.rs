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
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::os::fd::OwnedFd;

use dashmap::DashMap;

use crate::file::rules::Denial;
use crate::file::rules::file::FileState;
use crate::file::rules::ranges::Ticket;
use crate::rules::FileId;
use std::sync::{Arc, TryLockError};

use crate::sync::front_end::assert_may_block;
use crate::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

const POISON: &str = "no step of the rules panics";

/// The files of a share have this many data latches.
const DATA_LATCHES: usize = 64;

/// The name of a data latch in assertions.
const DATA_LATCH: &str = "the data latch of a file";

/// One file in use.
#[derive(Debug)]
pub struct FileCell {
    pub id: FileId,
    latch: Mutex<Latched>,
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
    /// All opens of the file are being ended: no lock request through a remaining open is granted.
    pub ending: bool,
    /// The map does not have the cell any more.
    retired: bool,
}

/// Called once with the answer.
pub type Completion = Box<dyn FnOnce(Result<(), Denial>) + Send>;

/// The requests that wait for a byte-range lock on one file. No thread blocks: a request leaves a
/// callback, which is called once with the answer, on the thread that makes the change, after the
/// file's lock is released. Empty, it costs a pointer.
#[derive(Default)]
#[expect(clippy::box_collection, reason = "each file in use has one, and almost all are empty")]
pub struct LockWaiters(Option<Box<HashMap<Ticket, Completion>>>);

impl LockWaiters {
    /// True if no request waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// `completion` is called when the lock request of that ticket has its answer.
    pub fn for_lock(&mut self, ticket: Ticket, completion: Completion) {
        self.0.get_or_insert_default().insert(ticket, completion);
    }

    /// The tickets of the waiting requests.
    pub fn tickets(&self) -> Vec<Ticket> {
        self.0.iter().flat_map(|waiters| waiters.keys().copied()).collect()
    }

    /// Removes the callback of a ticket.
    pub fn answered(&mut self, ticket: Ticket) -> Option<Completion> {
        let completion = self.0.as_mut()?.remove(&ticket);
        if self.0.as_ref().is_some_and(|waiters| waiters.is_empty()) {
            self.0 = None;
        }
        completion
    }
}

impl fmt::Debug for LockWaiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waiting({})", self.0.as_ref().map_or(0, |waiters| waiters.len()))
    }
}

impl FileCell {
    fn new(id: FileId) -> Self {
        Self { id, latch: Mutex::default() }
    }

    /// Locks the file's state. An idle cell may be retired: not for callers that found the cell by
    /// the file's name and change it.
    pub fn latch(&self) -> MutexGuard<'_, Latched> {
        assert_may_block("the lock of a file");
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
#[derive(Debug)]
pub struct OpenTable {
    cells: DashMap<ById, ()>,
    /// The data latches, by identity: several files may share one. Held for reading while bytes
    /// are read for a request, for writing while one request's bytes are written, so that no
    /// request sees half of another's range (S3). Taken after the latch, and never two of them.
    data: [RwLock<()>; DATA_LATCHES],
}

impl Default for OpenTable {
    fn default() -> Self {
        Self { cells: DashMap::default(), data: std::array::from_fn(|_| RwLock::default()) }
    }
}

impl OpenTable {
    /// Does `step` under the lock of the file, making its cell if there is none.
    pub fn with<T>(&self, id: FileId, step: impl FnOnce(&Arc<FileCell>, &mut Latched) -> T) -> T {
        loop {
            let cell = self.cell(id);
            let mut latched = cell.latch();
            if latched.retired {
                continue;
            }
            let answer = step(&cell, &mut latched);
            self.retire_if_idle(&cell, &mut latched);
            return answer;
        }
    }

    /// Does `step` under the locks of two different files, taken in the order of identities.
    pub fn with_two<T>(
        &self,
        one: FileId,
        other: FileId,
        step: impl FnOnce(&mut Latched, &mut Latched) -> T,
    ) -> T {
        assert_ne!(one, other, "one file is locked once");
        if one < other {
            self.with(one, |_, one| self.with(other, |_, other| step(one, other)))
        } else {
            self.with(other, |_, other| self.with(one, |_, one| step(one, other)))
        }
    }

    /// Does `step` under the lock of a cell that a handle refers to, and forgets the cell if
    /// nothing is left. On a retired cell every handle is closed, and the state says so.
    pub fn with_cell<T>(&self, cell: &Arc<FileCell>, step: impl FnOnce(&mut Latched) -> T) -> T {
        let mut latched = cell.latch();
        let answer = step(&mut latched);
        self.retire_if_idle(cell, &mut latched);
        answer
    }

    /// Locks the bytes of a file for reading.
    pub fn lock_to_read(&self, id: FileId) -> RwLockReadGuard<'_, ()> {
        assert_may_block(DATA_LATCH);
        self.data_latch(id).read().expect(POISON)
    }

    /// Locks the bytes of a file for reading, if no other thread writes: for event loops.
    pub fn try_lock_to_read(&self, id: FileId) -> Option<RwLockReadGuard<'_, ()>> {
        match self.data_latch(id).try_read() {
            Ok(reading) => Some(reading),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => panic!("{POISON}"),
        }
    }

    /// Locks the bytes of a file for writing.
    pub fn lock_to_write(&self, id: FileId) -> RwLockWriteGuard<'_, ()> {
        assert_may_block(DATA_LATCH);
        self.data_latch(id).write().expect(POISON)
    }

    fn data_latch(&self, id: FileId) -> &RwLock<()> {
        let which = id.ino % DATA_LATCHES as u64;
        &self.data[usize::try_from(which).unwrap_or_default()]
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
        if latched.state.is_idle() && latched.waiting.is_empty() && !latched.retired {
            latched.retired = true;
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
            table.with(id, |_, _| ());
            assert_eq!(table.len(), 0);
        }
    }

    #[test]
    fn a_file_in_use_takes_little_room() {
        // Two counters of the `Arc`, and what the allocator adds: 216 bytes.
        assert!(size_of::<FileCell>() <= 192, "{}", size_of::<FileCell>());
    }
}
