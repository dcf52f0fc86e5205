//! All queues of an account at once: replaced by a reset or a restore, while no other write runs.
//!
//! Decides nothing itself: what the service forgets is decided in [`super::memory`], how rows are
//! replaced in [`crate::queue::store`], and when, in [`crate::bench::states`].

use std::path::Path;
use std::sync::Arc;

use super::QueueService;
use crate::clock::TimeSource;
use crate::db::DbError;
use crate::db::counted::{HeldRows, SavedRows};
use crate::queue::rules::Tick;

impl QueueService {
    /// Holds the writer: requests that write wait until the value is dropped.
    pub(crate) fn hold(&self) -> HeldRows<'_, Tick> {
        self.store.hold()
    }

    /// Prepares to save all queues in `folder`.
    pub(crate) fn save(&self, folder: &Path) -> Result<SavedRows<Tick>, DbError> {
        self.store.save(folder)
    }

    /// The last change. To be called while the writer is held.
    pub(crate) fn last_change(&self) -> Tick {
        self.memory.last_change()
    }

    /// The rows were replaced by those of changes up to `last`, and the clock may have been set
    /// back. To be called while the writer is held.
    pub(crate) fn replaced(&self, clock: &Arc<dyn TimeSource>, last: Tick) {
        self.memory.replaced(clock, last);
    }
}
