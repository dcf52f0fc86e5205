//! All rows of the table store at once: replaced by none or by those of a saved state, while no
//! other write runs; and the rows of one moment saved.
//!
//! Decides that the ceiling of timestamps, which are `ETag`s too, never falls.

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
pub struct HeldTables<'a>(Held<'a>);

/// Tables that are being saved.
#[derive(Debug)]
pub struct SavedTables(Copy);

impl TableStore {
    /// Holds the writer still: requests that write wait until the value is dropped.
    pub fn hold(&self) -> HeldTables<'_> {
        HeldTables(self.0.hold())
    }

    /// Prepares to save all tables in `folder`.
    pub fn save(&self, folder: &Path) -> Result<SavedTables, DbError> {
        self.0.copy(&folder.join(FILE)).map(SavedTables)
    }
}

impl HeldTables<'_> {
    /// Removes all rows, in a transaction that waits for [`HeldTables::commit`].
    pub fn empty(&self) -> Result<(), DbError> {
        self.0.begin()?;
        self.0.empty(&KEPT)
    }

    /// Replaces all rows by those saved in `folder`, in a transaction that waits for
    /// [`HeldTables::commit`].
    pub fn restore(&self, folder: &Path) -> Result<(), DbError> {
        self.0.attach(&folder.join(FILE))?;
        self.0.begin()?;
        self.0.replace(&KEPT)?;
        let saved = "SELECT coalesce(max(value), 0) FROM saved.counters WHERE name = 'ticks'";
        self.0.run(|conn| {
            let (saved, tx) = (Ticks(conn.query_row(saved, [], |row| row.get(0))?), Tx(conn));
            tx.set_tick_ceiling(tx.tick_ceiling()?.max(saved))
        })
    }

    /// The tick below which all timestamps were given away.
    pub fn tick_ceiling(&self) -> Result<Ticks, DbError> {
        self.0.run(|conn| Tx(conn).tick_ceiling())
    }

    /// Commits.
    pub fn commit(&self) -> Result<(), DbError> {
        self.0.commit()
    }
}

impl SavedTables {
    /// The tables of this moment are saved.
    pub fn begin(&self) -> Result<(), DbError> {
        self.0.begin()
    }

    /// Saves them. Takes as long as there are rows.
    pub fn finish(self) -> Result<(), DbError> {
        self.0.finish(|_| Ok(()))
    }
}
