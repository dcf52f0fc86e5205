//! The table of files in use: one cell per file, each with its own lock.
//!
//! Decides how a file's state is found, locked and forgotten; what the state says is `core/`'s.
//! A file nobody uses has no cell. A cell is *retired* under its own lock when nothing is left
//! to remember, and then taken from the map: whoever still holds the `Arc` sees the mark and
//! looks again.
//!
//! Order of locks: a directory before an entry that is made in it, then by identity. The map's
//! guards are never held while a cell is locked.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};

use dashmap::DashMap;

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
pub struct Table {
    cells: DashMap<ById, ()>,
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
        self.cells.get(&id).map(|entry| Arc::clone(&entry.key().0))
    }

    /// All cells, for reports and for what concerns a whole subtree.
    pub fn cells(&self) -> Vec<Arc<FileCell>> {
        self.cells.iter().map(|entry| Arc::clone(&entry.key().0)).collect()
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
        if let Some(cell) = self.get(id) {
            return cell;
        }
        // Or the one that somebody else made in between.
        let entry = self.cells.entry(ById(Arc::new(FileCell::new(id)))).or_insert(());
        Arc::clone(&entry.key().0)
    }

    fn retire_if_idle(&self, cell: &Arc<FileCell>, latched: &mut Latched) {
        if latched.state.is_idle() && latched.waiting.is_empty() && latched.pins == 0 {
            latched.retired = true;
            self.cells.remove(&cell.id);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_file_has_one_cell_however_many_ask_for_it_at_once() {
        let table = Table::default();
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
        // Two counters of the `Arc`, and what the allocator adds: 208 bytes.
        assert!(size_of::<FileCell>() <= 184, "{}", size_of::<FileCell>());
    }
}
