//! The table of files in use: one cell per file, each with its own lock.
//!
//! Decides how a file's state is found, locked and forgotten; what the state says is `core/`'s.
//! A file nobody uses has no cell. A cell is *retired* under its own lock when nothing is left
//! to remember, and then taken from the map: whoever still holds the `Arc` sees the mark and
//! looks again.
//!
//! Order of locks: a directory before an entry that is made in it, then by identity. The map's
//! guards are never held while a cell is locked.

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use super::waiting::Waiting;
use crate::core::FileId;
use crate::core::file::FileState;
use std::sync::Arc;

use crate::sync::{Mutex, MutexGuard, RwLock};

/// One file in use.
#[derive(Debug)]
pub struct FileCell {
    /// Which file.
    pub id: FileId,
    latch: Mutex<Latched>,
    /// Held for reading while bytes are read for a request, for writing while one request's
    /// bytes are written: no request sees half of another's range (S3). Taken after the latch.
    pub data: RwLock<()>,
}

/// What the latch guards.
#[derive(Debug, Default)]
pub struct Latched {
    /// The rules' view of the file.
    pub state: FileState,
    /// Those who wait for a lock or for a change.
    pub waiting: Waiting,
    /// Readers that outlast their request's step and need the data latch of this very cell.
    pins: u32,
    retired: bool,
}

impl Latched {
    /// Keeps the cell until [`Table::unpin`].
    pub fn pin(&mut self) {
        self.pins += 1;
    }
}

impl FileCell {
    fn new(id: FileId) -> Self {
        Self { id, latch: Mutex::default(), data: RwLock::default() }
    }

    /// Locks the file's state. Only for those who hold an open of it: an idle cell may be retired.
    pub fn latch(&self) -> MutexGuard<'_, Latched> {
        // A panic under the latch is a broken invariant; going on could grant what is held.
        self.latch.lock().expect("no step of the rules panics")
    }
}

/// All files of one share that are in use.
#[derive(Debug, Default)]
pub struct Table {
    cells: DashMap<FileId, Arc<FileCell>>,
}

impl Table {
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
        if !latched.retired {
            self.retire_if_idle(cell, &mut latched);
        }
        answer
    }

    /// Takes one [`Latched::pin`] back.
    pub fn unpin(&self, cell: &Arc<FileCell>) {
        self.with_cell(cell, |latched| {
            latched.pins = latched.pins.checked_sub(1).expect("a pin is taken back once");
        });
    }

    /// The cell of a file in use; none if nobody uses it.
    pub fn get(&self, id: FileId) -> Option<Arc<FileCell>> {
        self.cells.get(&id).map(|cell| Arc::clone(cell.value()))
    }

    /// All cells, for reports and for what concerns a whole subtree.
    pub fn cells(&self) -> Vec<Arc<FileCell>> {
        self.cells.iter().map(|entry| Arc::clone(entry.value())).collect()
    }

    /// How many files are in use.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// True if no file is in use.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    fn cell(&self, id: FileId) -> Arc<FileCell> {
        match self.cells.entry(id) {
            Entry::Occupied(entry) => Arc::clone(entry.get()),
            Entry::Vacant(entry) => Arc::clone(&entry.insert(Arc::new(FileCell::new(id)))),
        }
    }

    fn retire_if_idle(&self, cell: &Arc<FileCell>, latched: &mut Latched) {
        if latched.state.is_idle() && latched.waiting.is_empty() && latched.pins == 0 {
            latched.retired = true;
            self.cells.remove(&cell.id);
        }
    }
}
