//! The database of one account's Table service: tables, entities, access policies.
//!
//! Decides the SQL and the form of rows. Rules are `core::table`'s; when something is read or
//! written is the engine's.
//!
//! ```text
//!   body       the properties of an entity as bytes
//!   writer     the last writer of an entity as text
//!   tables     rows of tables
//!   entities   rows of entities: point access, scans, removal in slices
//! ```

mod body;
mod entities;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;

use rusqlite::Connection;

use crate::db::counted::{HeldRows, SavedRows, StoredCount, ceiling, set_ceiling};
use crate::db::{Database, DbError, Purpose, Schema, SyncMode};
use crate::table::rules::Ticks;

pub use entities::{EntityRef, Scanned, StoredEntity};
pub use tables::{TableId, TableRow};

/// Keys are TEXT with the default collation, which orders by UTF-8 bytes. Entities are clustered
/// by their keys, so that a partition is read from neighbouring pages.
const SCHEMA: Schema = Schema {
    version: 1,
    statements: "
        CREATE TABLE tables (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            folded TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            policies TEXT NOT NULL
        );
        CREATE TABLE entities (
            table_id INTEGER NOT NULL,
            pk TEXT NOT NULL,
            rk TEXT NOT NULL,
            ticks INTEGER NOT NULL,
            writer TEXT NOT NULL,
            body BLOB NOT NULL,
            PRIMARY KEY (table_id, pk, rk)
        ) WITHOUT ROWID;
        CREATE TABLE deleted_tables (id INTEGER PRIMARY KEY);
        CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    ",
};

/// The last timestamp, which is an `ETag`.
impl StoredCount for Ticks {
    const FILE: &'static str = "table.db";
    const NAME: &'static str = "ticks";

    fn number(self) -> i64 {
        self.0
    }

    fn of_number(number: i64) -> Self {
        Self(number)
    }
}

/// The database of one account's Table service.
pub struct TableStore(Database);

/// A read or write transaction.
pub struct TableTx<'a>(&'a Connection);

impl TableStore {
    /// Opens the database file, or makes it.
    pub fn open(file: &Path, sync: SyncMode) -> Result<Self, DbError> {
        Database::open(file, &SCHEMA, sync).map(Self)
    }

    /// Reads one committed state. Waits for a connection; not for an event loop.
    pub fn read<T, E: From<DbError>>(
        &self,
        read: impl FnOnce(&TableTx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.0.read(|connection| read(&TableTx(connection)))
    }

    /// Reads one committed state without waiting; none if no connection is free.
    pub fn try_read<T, E: From<DbError>>(
        &self,
        read: impl FnOnce(&TableTx<'_>) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        self.0.try_read(|connection| read(&TableTx(connection))).ok()
    }

    /// Runs a change up to its first write. See [`Database::rehearse`].
    pub fn rehearse<T, E: From<DbError>>(
        &self,
        write: impl FnOnce(&TableTx<'_>) -> Result<T, E>,
    ) -> Result<(), E> {
        self.0.rehearse(|connection| write(&TableTx(connection)))
    }

    /// Writes and commits what frees space or takes none, on a full disk too. Waits for its turn;
    /// not for an event loop.
    pub fn write<T, E, F>(&self, mut write: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnMut(&TableTx<'_>) -> Result<T, E> + Send + 'static,
    {
        self.0.write_for(Purpose::Delete, move |connection| write(&TableTx(connection)))
    }

    /// Queues a write; `done` is called once, after the commit, and must not block.
    pub fn submit<T, E, F, D>(&self, purpose: Purpose, mut write: F, done: D)
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnMut(&TableTx<'_>) -> Result<T, E> + Send + 'static,
        D: FnOnce(Result<T, E>) + Send + 'static,
    {
        self.0.submit_for(purpose, move |connection| write(&TableTx(connection)), done);
    }

    /// Holds the writer: requests that write wait until the value is dropped.
    pub fn hold(&self) -> HeldRows<'_, Ticks> {
        HeldRows::new(&self.0)
    }

    /// Prepares to save all tables in `folder`.
    pub fn save(&self, folder: &Path) -> Result<SavedRows<Ticks>, DbError> {
        SavedRows::new(&self.0, folder)
    }

    /// The database itself, for checkpoints and figures.
    pub fn database(&self) -> &Database {
        &self.0
    }
}

impl TableTx<'_> {
    /// The tick below which all timestamps were given away.
    pub fn tick_ceiling(&self) -> Result<Ticks, DbError> {
        ceiling(self.0)
    }

    /// Raises the ceiling of timestamps.
    pub fn set_tick_ceiling(&self, ticks: Ticks) -> Result<(), DbError> {
        set_ceiling(self.0, ticks)
    }
}
