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
//!   memory       strictly rising moments; which requests ended what lately
//!   sweeper      removes what is expired or was dropped
//!   replace      all queues at once, by a reset or a restore
//! ```

mod error;
mod memory;
mod messages;
mod queues;
mod replace;
mod sweeper;
#[cfg(test)]
mod tests;
mod why;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;

// What arguments and answers are made of, as front ends see it.
pub use crate::db::DbError;
pub use error::{QueueError, QueueResult};
pub use messages::{NewMessage, Shown};
pub use queues::{Created, QueueInfo, QueueList, QueuePage};
pub use why::{ChangedMessage, MessageExplanation, QueueExplanation, Visibility};

use self::memory::{Moments, QueueMemory};
use crate::clock::TimeSource;
use crate::db::blocking::on_blocking_thread;
use crate::db::sweeper::Sweeper;
use crate::db::{Purpose, SyncMode, again};
use crate::queue::rules::{ChangedBy, MessageId, Tick};
use crate::queue::store::{QueueId, QueueRows, QueueStore};
use crate::rules::{Context, Timestamp, Writer};

/// The Queue service of one account.
pub struct QueueService {
    // Before the store: the sweeper's thread ends first.
    _sweeper: Sweeper,
    store: Arc<QueueStore>,
    memory: Arc<QueueMemory>,
}

/// A change under way, in the writer's transaction.
struct QueueChange<'a> {
    rows: &'a QueueRows<'a>,
    memory: &'a QueueMemory,
    now: Tick,
    by: ChangedBy,
    changes: RefCell<Vec<ChangedMessage>>,
    /// The change dropped rows that the sweeper is to remove.
    dropped: Cell<bool>,
    /// The transaction only reads: the change is checked, and nothing is written.
    rehearsal: bool,
}

/// A look at one committed state.
struct QueueView<'a> {
    rows: &'a QueueRows<'a>,
    memory: &'a QueueMemory,
    now: Tick,
}

impl QueueService {
    /// Opens the database at `path`, made if missing, and starts the sweeper.
    pub fn open(path: &Path, sync: SyncMode, clock: Arc<dyn TimeSource>) -> QueueResult<Self> {
        let store = Arc::new(QueueStore::open(path, sync)?);
        let ceiling = store.read_waiting::<_, QueueError>(|rows| Ok(rows.change_ceiling()?))?;
        let memory = Arc::new(QueueMemory::above(ceiling));
        let sweeper = sweeper::start(Arc::clone(&store), Arc::clone(&memory), clock)?;
        Ok(Self { _sweeper: sweeper, store, memory })
    }

    /// An error if the files of the service have lost their names since they were opened.
    pub(crate) fn check_place(&self) -> Result<(), DbError> {
        self.store.database().check_place()
    }

    /// Makes a change, as `operation`. Answers after its commit.
    async fn change<T: Send + 'static>(
        &self,
        context: &Context,
        operation: &str,
        change: impl FnOnce(&QueueChange<'_>) -> QueueResult<T> + Clone + Send + 'static,
    ) -> QueueResult<T> {
        let memory = Arc::clone(&self.memory);
        let by = context.writer(operation);
        let now = match context.due_stop() {
            Some(stop) => {
                self.check(context.now, by.clone(), change.clone()).await?;
                stop.pass().await
            }
            None => context.now,
        };
        let (send, answer) = oneshot::channel();
        let purpose = purpose_of(operation);
        let mut next = again(purpose, change);
        let write = move |rows: &QueueRows<'_>| {
            let Moments { now, change: at } = memory.moments_of_change(now);
            let under_way = QueueChange::new(rows, &memory, now, ChangedBy::new(by.clone(), at));
            let answer = next()(&under_way)?;
            let ceiling = memory.save_ceiling(rows, at)?;
            Ok((answer, under_way.changes.into_inner(), under_way.dropped.get(), ceiling))
        };
        let memory = Arc::clone(&self.memory);
        let committed = move |(answer, changes, dropped, ceiling)| {
            if let Some(ceiling) = ceiling {
                memory.ceiling_is_saved(ceiling);
            }
            memory.changes.add(changes);
            if dropped {
                memory.bell.ring();
            }
            answer
        };
        // A client that went away does not undo its request.
        self.store.submit(purpose, write, |done: QueueResult<_>| {
            drop(send.send(done.map(committed)));
        });
        answer.await.unwrap_or(Err(DbError::Closed.into()))
    }

    /// Runs a change up to its first write, in a read transaction.
    async fn check<T: Send + 'static>(
        &self,
        now: Timestamp,
        by: Writer,
        change: impl FnOnce(&QueueChange<'_>) -> QueueResult<T> + Send + 'static,
    ) -> QueueResult<()> {
        let (store, memory) = (Arc::clone(&self.store), Arc::clone(&self.memory));
        let check = move || {
            store.rehearse(|rows| {
                let now = memory.moment_of_look(now);
                let under_way = QueueChange::new(rows, &memory, now, ChangedBy::new(by, now));
                change(&QueueChange { rehearsal: true, ..under_way })
            })
        };
        on_blocking_thread(check).await
    }

    /// Looks at one committed state: at once if a connection is free, else on a thread that may
    /// block. Never on the writer's thread: a look must not wait for writes, nor be refused with
    /// them on a full disk.
    async fn look<T: Send + 'static>(
        &self,
        now: Timestamp,
        look: impl FnOnce(&QueueView<'_>) -> QueueResult<T> + Send + 'static,
    ) -> QueueResult<T> {
        let memory = Arc::clone(&self.memory);
        let read = move |rows: &QueueRows<'_>| {
            let now = memory.moment_of_look(now);
            look(&QueueView { rows, memory: &memory, now })
        };
        let read = match self.store.try_read(read) {
            Ok(answer) => return answer,
            Err(read) => read,
        };
        let store = Arc::clone(&self.store);
        on_blocking_thread(move || store.read_waiting(read)).await
    }
}

/// A request that removes something is carried out on a full disk too.
fn purpose_of(operation: &str) -> Purpose {
    match operation {
        "Delete Message" | "Clear Messages" | "Delete Queue" => Purpose::Delete,
        _ => Purpose::Store,
    }
}

impl<'a> QueueChange<'a> {
    fn new(rows: &'a QueueRows<'a>, memory: &'a QueueMemory, now: Tick, by: ChangedBy) -> Self {
        let (changes, dropped) = (RefCell::default(), Cell::default());
        Self { rows, memory, now, by, changes, dropped, rehearsal: false }
    }

    /// The queue of that name, or the refusal.
    fn queue(&self, name: &str) -> QueueResult<QueueId> {
        let found = self.rows.queue_id(name)?;
        found.ok_or_else(|| self.memory.no_queue(name, self.now).into())
    }

    /// The number of a new message.
    fn next_seq(&self) -> QueueResult<i64> {
        let number = self.memory.last_seq(self.rows)?.saturating_add(1);
        if !self.rehearsal {
            self.memory.seq_is_used(number);
        }
        Ok(number)
    }

    /// Has the history keep a change of a message, or of a queue as a whole, once it is committed.
    fn changed(&self, queue: &str, id: Option<MessageId>) {
        let change = ChangedMessage { queue: queue.to_owned(), id, by: self.by.writer.clone() };
        self.changes.borrow_mut().push(change);
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
    /// The next start goes on right after the last change. The writer reads which one that is:
    /// requests whose clients went away may still wait for it.
    fn drop(&mut self) {
        let memory = Arc::clone(&self.memory);
        let lowered = self.store.write_waiting(move |rows| {
            memory.ceiling_at_the_end().map_or(Ok(()), |last| rows.set_change_ceiling(last))
        });
        if let Err(error) = lowered {
            let error: DbError = error;
            log::warn!("the last change of the queues was not saved: {error}");
        }
    }
}

impl std::fmt::Debug for QueueService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "QueueService({})", self.store.database().path().display())
    }
}
