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

pub use messages::QueueHead;
pub use queues::QueueRow;

use rusqlite::Connection;

use crate::db::counted::{StoredCount, set_ceiling};
use crate::db::{DbError, RowStore, Schema, Tables};
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

/// The tables of an account's queues.
pub enum QueueTables {}

/// The database of an account's queues.
pub type QueueStore = RowStore<QueueTables>;

impl Tables for QueueTables {
    const SCHEMA: Schema = schema::SCHEMA;
    type Count = Tick;
    type Rows<'a> = QueueRows<'a>;

    fn rows(connection: &Connection) -> QueueRows<'_> {
        QueueRows(connection)
    }
}

impl QueueRows<'_> {
    /// Sets the ceiling of changes.
    pub fn set_change_ceiling(&self, ceiling: Tick) -> Result<(), DbError> {
        set_ceiling(self.0, ceiling)
    }
}
