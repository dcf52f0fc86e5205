//! The Queue service of one account: one method per operation.
//!
//! Decides which rows an operation reads and writes, in which order it checks (parameters, queue,
//! message, receipt), and that nothing is answered before it is committed. What an operation makes
//! of a message is decided in [`crate::queue::rules`].
//!
//! ```text
//!   queues       create, delete, list; metadata, stored access policies
//!   messages     put, get, peek, update, delete, clear
//!   why          recent changes; who has a message, and until when
//!   memory       strictly rising moments; which requests ended what lately; what a reset or a
//!                restore does to both
//!   sweeper      removes what is expired or was dropped
//! ```

mod error;
mod memory;
mod messages;
mod queues;
mod sweeper;
#[cfg(test)]
mod tests;
mod why;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

// What arguments and answers are made of, as front ends see it.
pub use crate::db::DbError;
pub use error::{QueueError, QueueResult};
pub use messages::{NewMessage, Shown};
pub use queues::{Created, QueueInfo, QueueList, QueuePage};
pub use why::{MessageExplanation, QueueExplanation, Visibility};

use self::memory::QueueMemory;
use crate::clock::TimeSource;
use crate::db::sweeper::Sweeper;
use crate::db::{DbService, ServiceMemory, Store as _, SyncMode};
use crate::journal::{AccountJournal, Change};
use crate::queue::rules::{ChangedBy, MessageId, Tick};
use crate::queue::store::{QueueId, QueueRows, QueueStore};
use crate::rules::address::ObjectAddress;
use crate::rules::{Context, Timestamp, Writer};

/// The Queue service of one account.
pub struct QueueService {
    // Before the store: the sweeper's thread ends first.
    _sweeper: Sweeper,
    store: Arc<QueueStore>,
    memory: Arc<QueueMemory>,
}

/// A change under way, in the writer's transaction.
pub(crate) struct QueueChange<'a> {
    rows: &'a QueueRows<'a>,
    memory: &'a QueueMemory,
    cx: &'a Context,
    now: Tick,
    /// The moment of the change.
    at: Tick,
    changes: RefCell<Vec<Change>>,
    /// The change dropped rows that the sweeper is to remove.
    dropped: Cell<bool>,
}

/// A look at one committed state.
struct QueueView<'a> {
    rows: &'a QueueRows<'a>,
    memory: &'a QueueMemory,
    now: Tick,
}

impl QueueService {
    /// Opens the database at `path`, made if missing, and starts the sweeper.
    pub fn open(
        path: &Path,
        sync: SyncMode,
        clock: Arc<dyn TimeSource>,
        journal: AccountJournal,
    ) -> QueueResult<Self> {
        let store = Arc::new(QueueStore::open(path, sync)?);
        let memory = Arc::new(QueueMemory::above(store.ceiling()?, journal));
        let sweeper = sweeper::start(Arc::clone(&store), Arc::clone(&memory), clock)?;
        Ok(Self { _sweeper: sweeper, store, memory })
    }

    /// An error if the files of the service have lost their names since they were opened.
    pub(crate) fn check_place(&self) -> Result<(), DbError> {
        self.store.database().check_place()
    }

    /// Looks at one committed state.
    fn look<T>(
        &self,
        now: Timestamp,
        look: impl FnOnce(&QueueView<'_>) -> QueueResult<T>,
    ) -> QueueResult<T> {
        self.store.read(|rows| {
            let now = self.memory.moment_of_look(now);
            look(&QueueView { rows, memory: &self.memory, now })
        })
    }
}

impl DbService for QueueService {
    type Memory = QueueMemory;

    fn parts(&self) -> (&Arc<QueueStore>, &Arc<QueueMemory>) {
        (&self.store, &self.memory)
    }
}

impl ServiceMemory for QueueMemory {
    type Store = QueueStore;
    type Error = QueueError;
    type Change<'a> = QueueChange<'a>;
    type Effects = (Vec<Change>, bool, Option<Tick>);

    fn begin<'a>(&'a self, rows: &'a QueueRows<'_>, cx: &'a Context) -> QueueChange<'a> {
        let (now, at) = self.moments_of_change(cx.now);
        let (changes, dropped) = (RefCell::default(), Cell::default());
        QueueChange { rows, memory: self, cx, now, at, changes, dropped }
    }

    fn finish(&self, change: QueueChange<'_>) -> QueueResult<Self::Effects> {
        let ceiling = self.count.save(|ceiling| change.rows.set_change_ceiling(ceiling))?;
        Ok((change.changes.into_inner(), change.dropped.get(), ceiling))
    }

    fn committed(&self, (changes, dropped, ceiling): Self::Effects) {
        if let Some(ceiling) = ceiling {
            self.count.saved(ceiling);
        }
        self.history.add(changes);
        if dropped {
            self.bell.ring();
        }
    }
}

impl QueueChange<'_> {
    /// The request that makes the change, as `operation`, and its moment.
    fn by(&self, operation: &str) -> ChangedBy {
        ChangedBy::new(self.cx.writer(operation), self.at)
    }

    /// The queue of that name, or the refusal.
    fn queue(&self, name: &str) -> QueueResult<QueueId> {
        let found = self.rows.queue_id(name)?;
        found.ok_or_else(|| self.memory.no_queue(name, self.now).into())
    }

    /// The number of a new message.
    fn next_seq(&self) -> QueueResult<i64> {
        let number = self.memory.last_seq(self.rows)?.saturating_add(1);
        self.memory.seq_is_used(number);
        Ok(number)
    }

    /// Has the history keep a change of a message, or of a queue as a whole, once it is committed.
    fn changed(&self, queue: &str, id: Option<MessageId>, by: &Writer) {
        let queue = queue.to_owned();
        let object = match id {
            Some(id) => ObjectAddress::Message { queue, id: id.to_string() },
            None => ObjectAddress::Queue(queue),
        };
        self.cx.changed(&object, (None, None), None);
        self.changes.borrow_mut().push(Change { object, etag: None, by: by.clone() });
    }
}

impl QueueView<'_> {
    /// The queue of that name, or the refusal.
    fn queue(&self, name: &str) -> QueueResult<QueueId> {
        let found = self.rows.queue_id(name)?;
        found.ok_or_else(|| self.memory.no_queue(name, self.now).into())
    }
}

impl Drop for QueueService {
    fn drop(&mut self) {
        self.store.end_at_last(&self.memory);
    }
}
