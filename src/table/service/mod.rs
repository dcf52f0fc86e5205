//! The Table service of one account: one method per operation.
//!
//! Decides which rows an operation reads and writes, in which order it checks (names, keys,
//! table, entity, limits), and that nothing is answered before it is committed. What a write does
//! to an entity is decided in [`crate::table::rules`].
//!
//! ```text
//!   tables        create, delete, get, list
//!   entities      get, insert, update, merge, delete
//!   transaction   several writes of one partition at once
//!   query         pages of entities; a scan is cut into slices
//!   settings      stored access policies
//!   ticker        strictly rising timestamps, which are ETags too
//!   history       recent changes; why: what is known of an entity
//!   sweeper       removes what deleted tables left
//!   replace       all tables at once, by a reset or a restore
//! ```

mod entities;
mod error;
mod history;
mod query;
mod replace;
mod settings;
mod sweeper;
mod tables;
#[cfg(test)]
mod tests;
mod ticker;
mod transaction;

use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;

pub use entities::{Write, WrittenEntity};
pub use error::{TableError, TableResult};
pub use history::{ChangedEntity, EntityExplanation};
pub use query::{EntityQuery, EntitySink, SLICE_ROWS};
pub use tables::{TablePage, TableQuery};

// What answers are made of, as front ends see it.
pub use crate::db::{DbError, SyncMode};
use crate::db::{Purpose, again};
pub use crate::table::store::{EntityRef, StoredEntity};

use self::ticker::Ticker;
use crate::clock::Present;
use crate::db::blocking::on_blocking_thread;
use crate::db::sweeper::Sweeper;
use crate::journal::recent::Recent;
use crate::rules::context::Context;
use crate::rules::{Timestamp, Writer};
use crate::sync::bell::Bell;
use crate::table::rules::{TableDenial, TableName, Ticks};
use crate::table::store::{TableId, TableStore, TableTx};

/// The Table service of one account.
pub struct TableService {
    // Before the store: the sweeper's thread ends first.
    _sweeper: Sweeper,
    store: Arc<TableStore>,
    memory: Arc<TableMemory>,
}

/// The state that requests under way share. It does not hold the store: a request may outlive its
/// caller on the writer's thread, which must not be the one that closes the database.
struct TableMemory {
    ticker: Ticker,
    history: Recent<ChangedEntity>,
    present: Present,
    /// Wakes the sweeper. Rung by what was committed, so that it rings without the client too.
    bell: Arc<Bell>,
}

/// The answer of a request, and its entries in the history.
struct Recorded<T> {
    answer: T,
    changes: Vec<ChangedEntity>,
    /// The sweeper has something to remove.
    dropped: bool,
}

/// A change under way, in the writer's transaction.
struct TableChange<'a> {
    tx: &'a TableTx<'a>,
    memory: &'a TableMemory,
    context: &'a Context,
    /// The transaction only reads: the change is checked, and nothing is written.
    rehearsal: bool,
}

impl TableService {
    /// Opens the database file, made if missing, and starts to remove what deleted tables left.
    pub fn open(file: &Path, sync: SyncMode) -> TableResult<Self> {
        let store = TableStore::open(file, sync)?;
        let ceiling = store.read::<_, TableError>(|tx| Ok(tx.tick_ceiling()?))?;
        let (ticker, history) = (Ticker::new(ceiling), Recent::default());
        let (present, bell) = (Present::default(), Arc::default());
        let memory = TableMemory { ticker, history, present, bell };
        let store = Arc::new(store);
        let sweeper = sweeper::start(Arc::clone(&store), Arc::clone(&memory.bell))?;
        Ok(Self { _sweeper: sweeper, store, memory: Arc::new(memory) })
    }

    /// An error if the files of the service have lost their names since they were opened.
    pub(crate) fn check_place(&self) -> Result<(), DbError> {
        self.store.database().check_place()
    }

    /// Makes a change. Answers after its commit; a caller that goes away does not undo it.
    async fn change<T: Send + 'static>(
        &self,
        context: &Context,
        change: impl FnOnce(&TableChange<'_>) -> TableResult<Recorded<T>> + Clone + Send + 'static,
    ) -> TableResult<T> {
        self.change_for(Purpose::Store, context, change).await
    }

    /// As [`TableService::change`], for a purpose: a change that removes something may use the
    /// space that is kept for that.
    async fn change_for<T: Send + 'static>(
        &self,
        purpose: Purpose,
        context: &Context,
        change: impl FnOnce(&TableChange<'_>) -> TableResult<Recorded<T>> + Clone + Send + 'static,
    ) -> TableResult<T> {
        let now = match context.due_stop() {
            Some(stop) => {
                self.check(context, change.clone()).await?;
                stop.pass().await
            }
            None => context.now,
        };
        let (memory, mut context) = (Arc::clone(&self.memory), Context { now, ..context.clone() });
        let mut next = again(purpose, change);
        let write = move |tx: &TableTx<'_>| {
            context.now = memory.present.of(context.now);
            let (memory, context) = (&*memory, &context);
            let done = next()(&TableChange { tx, memory, context, rehearsal: false })?;
            Ok((done, memory.ticker.save(tx)?))
        };
        let (send, answer) = oneshot::channel();
        let memory = Arc::clone(&self.memory);
        self.store
            .submit(purpose, write, move |outcome| drop(send.send(memory.committed(outcome))));
        answer.await.unwrap_or(Err(DbError::Closed.into()))
    }

    /// Checks a change in a read transaction.
    async fn check<T: Send + 'static>(
        &self,
        context: &Context,
        change: impl FnOnce(&TableChange<'_>) -> TableResult<Recorded<T>> + Send + 'static,
    ) -> TableResult<()> {
        let (store, memory) = (Arc::clone(&self.store), Arc::clone(&self.memory));
        let context = context.clone();
        let check = move || {
            store.rehearse(|tx| {
                let (memory, context) = (&*memory, &context);
                change(&TableChange { tx, memory, context, rehearsal: true })
            })
        };
        on_blocking_thread(check).await
    }

    /// Reads a bounded number of rows: at once if a connection is free, else on another thread.
    async fn look<T: Send + 'static>(
        &self,
        look: impl Fn(&TableTx<'_>) -> TableResult<T> + Send + 'static,
    ) -> TableResult<T> {
        match self.store.try_read(&look) {
            Some(answer) => answer,
            None => self.elsewhere(look).await,
        }
    }

    /// Reads on a thread that may block.
    async fn elsewhere<T: Send + 'static>(
        &self,
        look: impl FnOnce(&TableTx<'_>) -> TableResult<T> + Send + 'static,
    ) -> TableResult<T> {
        let store = Arc::clone(&self.store);
        on_blocking_thread(move || store.read(look)).await
    }
}

impl TableMemory {
    fn committed<T>(&self, outcome: TableResult<(Recorded<T>, Option<Ticks>)>) -> TableResult<T> {
        let (Recorded { answer, changes, dropped }, saved) = outcome?;
        if let Some(saved) = saved {
            self.ticker.saved(saved);
        }
        self.history.add(changes);
        if dropped {
            self.bell.ring();
        }
        Ok(answer)
    }
}

impl Drop for TableService {
    /// The next start continues right after the last timestamp. The writer reads which one that
    /// is: requests whose clients went away may still wait for it, and take timestamps.
    fn drop(&mut self) {
        let memory = Arc::clone(&self.memory);
        let lowered = self
            .store
            .write(move |tx| memory.ticker.last().map_or(Ok(()), |last| tx.set_tick_ceiling(last)));
        if let Err(error) = lowered {
            log::warn!("the last timestamp of the tables was not saved: {error}");
        }
    }
}

impl<T> Recorded<T> {
    /// An answer of a request that the history does not keep.
    fn quietly(answer: T) -> Self {
        Self { answer, changes: Vec::new(), dropped: false }
    }

    /// An answer of a request that made this change.
    fn with(answer: T, change: ChangedEntity) -> Self {
        Self { answer, changes: vec![change], dropped: false }
    }
}

impl TableChange<'_> {
    /// A timestamp later than all before.
    fn tick(&self) -> Ticks {
        if self.rehearsal {
            return Ticks::of(self.context.now);
        }
        self.memory.ticker.next(self.context.now)
    }

    /// The entry in the history for a change of a table as a whole.
    fn of_table(&self, name: &TableName, operation: &str) -> ChangedEntity {
        let by = self.writer(operation, self.context.now);
        ChangedEntity { table: name.to_string(), key: None, ticks: None, by }
    }
}

impl TableChange<'_> {
    /// The writer that an object changed by this request keeps.
    fn writer(&self, operation: &str, when: Timestamp) -> Writer {
        Writer { when, ..self.context.writer(operation) }
    }
}

fn table_of(tx: &TableTx<'_>, name: &TableName) -> TableResult<TableId> {
    Ok(tx.table_id(name)?.ok_or(TableDenial::TableNotFound)?)
}

impl std::fmt::Debug for TableService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TableService({})", self.store.database().path().display())
    }
}
