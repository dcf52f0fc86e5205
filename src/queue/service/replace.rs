//! All queues of an account at once: replaced by a reset or a restore, while no other write runs.
//!
//! Decides nothing itself: what the service forgets is decided in [`super::memory`], how rows are
//! replaced in [`crate::queue::store`], and when, in [`crate::bench::states`].

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use super::QueueService;
use super::known::NothingKnown;
use crate::clock::TimeSource;
use crate::db::DbError;
use crate::db::counted::{HeldRows, SavedRows};
use crate::queue::rules::Tick;

/// All queues, with the writer held. No queue is known meanwhile.
pub(crate) struct HeldQueues<'a> {
    rows: HeldRows<'a, Tick>,
    // After the rows: by then they are replaced, or they are not.
    _known: NothingKnown<'a>,
}

impl<'a> Deref for HeldQueues<'a> {
    type Target = HeldRows<'a, Tick>;

    fn deref(&self) -> &HeldRows<'a, Tick> {
        &self.rows
    }
}

impl QueueService {
    /// Holds the writer: requests that write wait until the value is dropped.
    pub(crate) fn hold(&self) -> HeldQueues<'_> {
        let known = self.memory.known.suspend();
        HeldQueues { rows: self.store.hold(), _known: known }
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
