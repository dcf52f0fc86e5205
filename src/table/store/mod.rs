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

use rusqlite::Connection;

use crate::db::counted::{StoredCount, set_ceiling};
use crate::db::{DbError, RowStore, Schema, Tables};
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

/// A read or write transaction.
pub struct TableTx<'a>(&'a Connection);

/// The tables of one account's Table service.
pub enum TableTables {}

/// The database of one account's Table service.
pub type TableStore = RowStore<TableTables>;

impl Tables for TableTables {
    const SCHEMA: Schema = SCHEMA;
    type Count = Ticks;
    type Rows<'a> = TableTx<'a>;

    fn rows(connection: &Connection) -> TableTx<'_> {
        TableTx(connection)
    }
}

impl TableTx<'_> {
    /// Raises the ceiling of timestamps.
    pub fn set_tick_ceiling(&self, ticks: Ticks) -> Result<(), DbError> {
        set_ceiling(self.0, ticks)
    }
}
