//! Queues that were used lately, in memory: the identities of their messages by their names.
//!
//! Decides how many are kept. When they may be used is decided in [`crate::db::kept`]. Only the
//! writer asks: for a reader an identity that was replaced a moment ago would mix two states.

use std::sync::Arc;

use crate::db::kept::{Kept, KeptWrite, Missing, Suspended};
use crate::queue::store::QueueId;

/// Bytes of queues that an account keeps.
const BYTES_MAX: usize = 256 << 10;
/// Bytes that are counted for a queue besides its name.
const ENTRY_BYTES: usize = 128;

type Queue = (Arc<str>, QueueId);

/// The queues of an account that were used lately.
pub(super) struct KnownQueues(Arc<Kept<Queue>>);

/// A queue that is being made, cleared or deleted, until the outcome is known.
pub(super) type QueueWrite = KeptWrite<Queue>;

/// No queue is known until the value is dropped.
pub(super) type NothingKnown<'a> = Suspended<'a, Queue>;

impl Default for KnownQueues {
    fn default() -> Self {
        Self(Arc::new(Kept::new(BYTES_MAX)))
    }
}

impl KnownQueues {
    /// The identity of a queue's messages.
    pub fn find(&self, name: &str) -> Result<QueueId, Missing> {
        self.0.find(&name, |(known, _)| **known == *name).map(|(_, id)| id)
    }

    /// Keeps a queue that was looked up after it was missing here.
    pub fn put(&self, missing: Missing, name: &str, id: QueueId) {
        self.0.put(missing, ENTRY_BYTES + name.len(), (name.into(), id));
    }

    /// Begins to make, clear or delete a queue, in the writer's transaction.
    pub fn write(&self, name: &str) -> QueueWrite {
        self.0.write(&name)
    }

    /// Forgets everything. To be called before all rows are replaced.
    pub fn suspend(&self) -> NothingKnown<'_> {
        self.0.suspend()
    }
}
