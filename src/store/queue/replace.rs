//! All rows of the queue store at once: replaced by none or by those of a saved state, while no
//! other write runs; and the rows of one moment saved.
//!
//! Decides that no rows stay: the moments behind receipts are in memory (`engine::queue`).

use std::path::Path;

use super::QueueStore;
use crate::core::queue::Tick;
use crate::store::db::{Copy, DbError, Held};

/// The name of the database in a saved state.
const FILE: &str = "queue.db";

/// The queue store with its writer held.
#[derive(Debug)]
pub struct HeldQueues<'a>(Held<'a>);

/// Queues that are being saved.
#[derive(Debug)]
pub struct SavedQueues(Copy);

impl QueueStore {
    /// Holds the writer still: requests that write wait until the value is dropped.
    pub fn hold(&self) -> HeldQueues<'_> {
        HeldQueues(self.0.hold())
    }

    /// Prepares to save all queues in `folder`.
    pub fn save(&self, folder: &Path) -> Result<SavedQueues, DbError> {
        self.0.copy(&folder.join(FILE)).map(SavedQueues)
    }
}

impl HeldQueues<'_> {
    /// Removes all rows, in a transaction that waits for [`HeldQueues::commit`].
    pub fn empty(&self) -> Result<(), DbError> {
        self.0.begin()?;
        self.0.empty(&[])
    }

    /// Replaces all rows by those saved in `folder`, in a transaction that waits for
    /// [`HeldQueues::commit`].
    pub fn restore(&self, folder: &Path) -> Result<(), DbError> {
        self.0.attach(&folder.join(FILE))?;
        self.0.begin()?;
        self.0.replace(&[])
    }

    /// The latest change of any message.
    pub fn last_change(&self) -> Result<Tick, DbError> {
        let last = "SELECT coalesce(max(changed), 0) FROM main.message";
        self.0.run(|conn| Ok(Tick(conn.query_row(last, [], |row| row.get(0))?)))
    }

    /// Commits.
    pub fn commit(&self) -> Result<(), DbError> {
        self.0.commit()
    }
}

impl SavedQueues {
    /// The queues of this moment are saved.
    pub fn begin(&self) -> Result<(), DbError> {
        self.0.begin()
    }

    /// Saves them. Takes as long as there are rows.
    pub fn finish(self) -> Result<(), DbError> {
        self.0.finish(|_| Ok(()))
    }
}
