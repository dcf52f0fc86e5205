//! All rows of the queue store at once: replaced by none or by those of a saved state, while no
//! other write runs; and the rows of one moment saved.
//!
//! Decides that the ceiling of changes, which are receipts too, never falls, and that a saved state
//! has the last one instead: else each save and restore would add the distance to it.

use std::cell::Cell;
use std::path::Path;

use super::{QueueRows, QueueStore};
use crate::core::queue::Tick;
use crate::store::db::{Copy, DbError, Held};

/// Tables whose rows stay: counters that never run back.
const KEPT: [&str; 1] = ["counters"];
/// The name of the database in a saved state.
const FILE: &str = "queue.db";

/// The queue store with its writer held.
#[derive(Debug)]
pub struct HeldQueues<'a> {
    held: Held<'a>,
    /// The last change before the restored state was saved.
    saved: Cell<Tick>,
}

/// Queues that are being saved.
#[derive(Debug)]
pub struct SavedQueues {
    copy: Copy,
    /// The last change.
    last: Tick,
}

impl QueueStore {
    /// Holds the writer still: requests that write wait until the value is dropped.
    pub fn hold(&self) -> HeldQueues<'_> {
        HeldQueues { held: self.0.hold(), saved: Cell::default() }
    }

    /// Prepares to save all queues in `folder`.
    pub fn save(&self, folder: &Path) -> Result<SavedQueues, DbError> {
        let copy = self.0.copy(&folder.join(FILE))?;
        Ok(SavedQueues { copy, last: Tick::default() })
    }
}

impl HeldQueues<'_> {
    /// Removes all rows, in a transaction that waits for [`HeldQueues::commit`].
    pub fn empty(&self) -> Result<(), DbError> {
        self.held.begin()?;
        self.held.empty(&KEPT)
    }

    /// Replaces all rows by those saved in `folder`, in a transaction that waits for
    /// [`HeldQueues::commit`].
    pub fn restore(&self, folder: &Path) -> Result<(), DbError> {
        self.held.attach(&folder.join(FILE))?;
        self.held.begin()?;
        self.held.replace(&KEPT)?;
        let saved = "SELECT coalesce(max(value), 0) FROM saved.counters WHERE name = 'change'";
        self.held.run(|conn| {
            let (saved, rows) =
                (Tick(conn.query_row(saved, [], |row| row.get(0))?), QueueRows(conn));
            self.saved.set(saved);
            rows.set_change_ceiling(rows.change_ceiling()?.max(saved))
        })
    }

    /// The last change before the restored state was saved; 0 if none is restored.
    pub fn saved_change(&self) -> Tick {
        self.saved.get()
    }

    /// Has the commit need little more of the disk.
    pub fn flush(&self) -> Result<(), DbError> {
        self.held.flush()
    }

    /// Commits.
    pub fn commit(&self) -> Result<(), DbError> {
        self.held.commit()
    }
}

impl SavedQueues {
    /// The queues of this moment are saved, and `last` is the last change.
    pub fn begin(&mut self, last: Tick) -> Result<(), DbError> {
        self.last = last;
        self.copy.begin()
    }

    /// Saves them. Takes as long as there are rows.
    pub fn finish(self) -> Result<(), DbError> {
        let exact = "UPDATE copy.counters SET value = ?1 WHERE name = 'change'";
        self.copy.finish(|conn| {
            conn.execute(exact, [self.last.0])?;
            Ok(())
        })
    }
}
