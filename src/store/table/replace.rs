//! All rows of the table store at once: replaced by none or by those of a saved state, while no
//! other write runs; and the rows of one moment saved.
//!
//! Decides that the ceiling of timestamps, which are `ETag`s too, never falls, and that a saved
//! state has the last one instead: else each save and restore would add the distance to it.

use std::cell::Cell;
use std::path::Path;

use super::{TableStore, Tx};
use crate::core::table::Ticks;
use crate::store::db::{Copy, DbError, Held};

/// Tables whose rows stay: counters that never run back.
const KEPT: [&str; 1] = ["counters"];
/// The name of the database in a saved state.
const FILE: &str = "table.db";

/// The table store with its writer held.
#[derive(Debug)]
pub struct HeldTables<'a> {
    held: Held<'a>,
    /// The last timestamp that was given out when the restored state was saved.
    saved: Cell<Ticks>,
}

/// Tables that are being saved.
#[derive(Debug)]
pub struct SavedTables {
    copy: Copy,
    /// The last timestamp that was given out.
    last: Ticks,
}

impl TableStore {
    /// Holds the writer still: requests that write wait until the value is dropped.
    pub fn hold(&self) -> HeldTables<'_> {
        HeldTables { held: self.0.hold(), saved: Cell::default() }
    }

    /// Prepares to save all tables in `folder`.
    pub fn save(&self, folder: &Path) -> Result<SavedTables, DbError> {
        let copy = self.0.copy(&folder.join(FILE))?;
        Ok(SavedTables { copy, last: Ticks::default() })
    }
}

impl HeldTables<'_> {
    /// Removes all rows, in a transaction that waits for [`HeldTables::commit`].
    pub fn empty(&self) -> Result<(), DbError> {
        self.held.begin()?;
        self.held.empty(&KEPT)
    }

    /// Replaces all rows by those saved in `folder`, in a transaction that waits for
    /// [`HeldTables::commit`].
    pub fn restore(&self, folder: &Path) -> Result<(), DbError> {
        self.held.attach(&folder.join(FILE))?;
        self.held.begin()?;
        self.held.replace(&KEPT)?;
        let saved = "SELECT coalesce(max(value), 0) FROM saved.counters WHERE name = 'ticks'";
        self.held.run(|conn| {
            let (saved, tx) = (Ticks(conn.query_row(saved, [], |row| row.get(0))?), Tx(conn));
            self.saved.set(saved);
            tx.set_tick_ceiling(tx.tick_ceiling()?.max(saved))
        })
    }

    /// The last timestamp that was given out when the restored state was saved; 0 if none is
    /// restored.
    pub fn saved_ticks(&self) -> Ticks {
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

impl SavedTables {
    /// The tables of this moment are saved, when the last timestamp was `last`.
    pub fn begin(&mut self, last: Ticks) -> Result<(), DbError> {
        self.last = last;
        self.copy.begin()
    }

    /// Saves them. Takes as long as there are rows.
    pub fn finish(self) -> Result<(), DbError> {
        let exact = "UPDATE copy.counters SET value = ?1 WHERE name = 'ticks'";
        self.copy.finish(|conn| {
            conn.execute(exact, [self.last.0])?;
            Ok(())
        })
    }
}
