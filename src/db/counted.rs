//! Databases with a counter that never runs back: the ceiling of the counter, and all other rows
//! replaced by none or by those of a saved state, while no other write runs, or saved as they are
//! at one moment.
//!
//! Decides that the ceiling never falls, and that a saved state has the last count instead: else
//! each save and restore would add the distance to it. The store of a service decides what it
//! counts.

use std::cell::Cell;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use crate::db::{Copy, Database, DbError, HeldWriter};

/// Tables whose rows stay: counters that never run back.
const KEPT: [&str; 1] = ["counters"];

/// A count, in the database of the one service that counts it.
pub trait StoredCount: std::marker::Copy + Default + Ord + std::fmt::Debug {
    /// The name of the database in a saved state.
    const FILE: &'static str;
    /// The name of the counter in the table `counters`.
    const NAME: &'static str;

    /// The count as a number.
    fn number(self) -> i64;
    /// The count of a number.
    fn of_number(number: i64) -> Self;
}

/// A count that no earlier one is above.
pub(crate) fn ceiling<C: StoredCount>(conn: &Connection) -> Result<C, DbError> {
    let mut select = conn.prepare_cached("SELECT value FROM counters WHERE name = ?1")?;
    let value = select.query_row([C::NAME], |row| row.get(0).map(C::of_number));
    Ok(value.optional()?.unwrap_or_default())
}

pub(crate) fn set_ceiling<C: StoredCount>(conn: &Connection, ceiling: C) -> Result<(), DbError> {
    let mut insert = conn.prepare_cached(
        "INSERT INTO counters (name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    )?;
    insert.execute(params![C::NAME, ceiling.number()])?;
    Ok(())
}

/// A store with its writer held: requests that write wait until the value is dropped.
#[derive(Debug)]
pub struct HeldRows<'a, C: StoredCount> {
    held: HeldWriter<'a>,
    /// The last count before the restored state was saved.
    saved: Cell<C>,
}

impl<'a, C: StoredCount> HeldRows<'a, C> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { held: database.hold(), saved: Cell::default() }
    }

    /// Removes all rows, in a transaction that waits for [`HeldRows::commit`].
    pub fn empty(&self) -> Result<(), DbError> {
        self.held.begin()?;
        self.held.empty(&KEPT)
    }

    /// Replaces all rows by those saved in `folder`, in a transaction that waits for
    /// [`HeldRows::commit`].
    pub fn restore(&self, folder: &Path) -> Result<(), DbError> {
        self.replace(folder).map_err(|error| self.held.blame(error))
    }

    fn replace(&self, folder: &Path) -> Result<(), DbError> {
        self.held.attach(&folder.join(C::FILE))?;
        self.held.begin()?;
        self.held.replace(&KEPT)?;
        let saved = "SELECT coalesce(max(value), 0) FROM saved.counters WHERE name = ?1";
        self.held.run(|conn| {
            let saved = conn.query_row(saved, [C::NAME], |row| row.get(0).map(C::of_number))?;
            self.saved.set(saved);
            set_ceiling(conn, ceiling::<C>(conn)?.max(saved))
        })
    }

    /// The last count before the restored state was saved; 0 if none is restored.
    pub fn saved_last(&self) -> C {
        self.saved.get()
    }

    /// Has the commit need little more of the disk.
    pub fn flush(&self) -> Result<(), DbError> {
        self.held.flush()
    }

    pub fn commit(&self) -> Result<(), DbError> {
        self.held.commit()
    }
}

/// Rows that are being saved.
#[derive(Debug)]
pub struct SavedRows<C: StoredCount> {
    copy: Copy,
    last: C,
}

impl<C: StoredCount> SavedRows<C> {
    /// Prepares to save all rows in `folder`.
    pub(crate) fn new(database: &Database, folder: &Path) -> Result<Self, DbError> {
        Ok(Self { copy: database.copy(&folder.join(C::FILE))?, last: C::default() })
    }

    /// The rows of this moment are saved, and `last` is the last count.
    pub fn begin(&mut self, last: C) -> Result<(), DbError> {
        self.last = last;
        self.copy.begin()
    }

    /// Saves them. Takes as long as there are rows.
    pub fn finish(self) -> Result<(), DbError> {
        let exact = "UPDATE copy.counters SET value = ?1 WHERE name = ?2";
        self.copy.finish(|conn| {
            conn.execute(exact, params![self.last.number(), C::NAME])?;
            Ok(())
        })
    }
}
