//! Queues and messages on disk: `queue.db`, one per account.
//!
//! Decides which rows there are and how they are found. What an operation makes of a message is
//! decided in `core::queue`; which rows one operation reads and writes, in `engine::queue`; when a
//! transaction is committed, in [`crate::db`].
//!
//! ```text
//!   schema       the tables, and why they are cut so
//!   queues       queues, metadata, stored access policies
//!   messages     the head of a queue, one message, counts, sweeping
//! ```

mod messages;
mod queues;
mod schema;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use messages::QueueHead;
pub use queues::QueueRow;

use rusqlite::Connection;

use crate::db::counted::{HeldRows, SavedRows, StoredCount, ceiling, set_ceiling};
use crate::db::{Database, DbError, Purpose, SyncMode};
use crate::queue::rules::Tick;

/// The last change, which makes a receipt.
impl StoredCount for Tick {
    const FILE: &'static str = "queue.db";
    const NAME: &'static str = "change";

    fn number(self) -> i64 {
        self.0
    }

    fn of_number(number: i64) -> Self {
        Self(number)
    }
}

/// The identity of a queue's messages: another one after each Clear Messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueId(i64);

/// The rows of one transaction.
pub struct QueueRows<'a>(&'a Connection);

/// The database of an account's queues.
pub struct QueueStore(Database);

impl QueueStore {
    /// Opens the database at `path`, made if missing.
    pub fn open(path: &Path, sync: SyncMode) -> Result<Self, DbError> {
        Database::open(path, &schema::SCHEMA, sync).map(Self)
    }

    /// Reads in one transaction, for event loops: gives `read` back instead of waiting.
    pub fn try_read<T, E, F>(&self, read: F) -> Result<Result<T, E>, F>
    where
        E: From<DbError>,
        F: FnOnce(&QueueRows<'_>) -> Result<T, E>,
    {
        let mut read = Some(read);
        let ran = self.0.try_read(|connection| {
            let read = read.take().expect("a closure runs once");
            read(&QueueRows(connection))
        });
        match ran {
            Ok(outcome) => Ok(outcome),
            Err(_) => Err(read.expect("the database did not run the closure")),
        }
    }

    /// Changes rows in one transaction of the writer's thread, which calls `done` once, after the
    /// commit; it must not block.
    pub fn submit<T, E, F, D>(&self, purpose: Purpose, mut write: F, done: D)
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnMut(&QueueRows<'_>) -> Result<T, E> + Send + 'static,
        D: FnOnce(Result<T, E>) + Send + 'static,
    {
        self.0.submit_for(purpose, move |connection| write(&QueueRows(connection)), done);
    }

    /// Reads in one transaction. Waits for a connection; not for event loops.
    pub fn read_waiting<T, E: From<DbError>>(
        &self,
        read: impl FnOnce(&QueueRows<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.0.read(|connection| read(&QueueRows(connection)))
    }

    /// Runs a change up to its first write. See [`Database::rehearse`].
    pub fn rehearse<T, E: From<DbError>>(
        &self,
        write: impl FnOnce(&QueueRows<'_>) -> Result<T, E>,
    ) -> Result<(), E> {
        self.0.rehearse(|connection| write(&QueueRows(connection)))
    }

    /// Removes rows in one transaction, on a full disk too. Waits for the commit.
    pub fn write_waiting<T, E, F>(&self, mut write: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnMut(&QueueRows<'_>) -> Result<T, E> + Send + 'static,
    {
        self.0.write_for(Purpose::Delete, move |connection| write(&QueueRows(connection)))
    }

    /// Holds the writer: requests that write wait until the value is dropped.
    pub fn hold(&self) -> HeldRows<'_, Tick> {
        HeldRows::new(&self.0)
    }

    /// Prepares to save all queues in `folder`.
    pub fn save(&self, folder: &Path) -> Result<SavedRows<Tick>, DbError> {
        SavedRows::new(&self.0, folder)
    }

    pub fn database(&self) -> &Database {
        &self.0
    }
}

impl QueueRows<'_> {
    /// A moment that no change before is after.
    pub fn change_ceiling(&self) -> Result<Tick, DbError> {
        ceiling(self.0)
    }

    /// Sets the ceiling of changes.
    pub fn set_change_ceiling(&self, ceiling: Tick) -> Result<(), DbError> {
        set_ceiling(self.0, ceiling)
    }
}
