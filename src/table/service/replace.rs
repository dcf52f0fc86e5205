//! All tables of an account at once: replaced by a reset or a restore, while no other write runs.
//!
//! Decides what the service forgets with its entities: not the last timestamp, which is an `ETag`.
//! The rows are replaced in [`crate::table::store`]; when, is decided in
//! [`crate::bench::states`].

use std::path::Path;
use std::sync::Arc;

use super::TableService;
use crate::clock::TimeSource;
use crate::db::DbError;
use crate::db::counted::{HeldRows, SavedRows};
use crate::table::rules::Ticks;

impl TableService {
    /// Holds the writer: requests that write wait until the value is dropped.
    pub(crate) fn hold(&self) -> HeldRows<'_, Ticks> {
        self.store.hold()
    }

    /// Prepares to save all tables in `folder`.
    pub(crate) fn save(&self, folder: &Path) -> Result<SavedRows<Ticks>, DbError> {
        self.store.save(folder)
    }

    /// The last timestamp that was given out. To be called while the writer is held.
    pub(crate) fn last_ticks(&self) -> Ticks {
        self.memory.ticker.latest()
    }

    /// The rows were replaced by those of timestamps up to `last`, and the clock may have been set
    /// back. To be called while the writer is held.
    pub(crate) fn replaced(&self, clock: &Arc<dyn TimeSource>, last: Ticks) {
        self.memory.ticker.raise(last);
        self.memory.present.set_back(clock);
        self.memory.history.clear();
        self.memory.bell.ring();
    }
}
