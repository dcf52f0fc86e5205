//! The Table service of one account: one method per operation.
//!
//! Decides which rows an operation reads and writes, in which order it checks (names, keys,
//! table, entity, limits), and that nothing is answered before it is committed. What a write does
//! to an entity is decided in [`crate::table::rules`].
//!
//! ```text
//!   tables        create, delete, get, list, access policies; removes what deleted tables left
//!   entities      get, insert, update, merge, delete; several writes of one partition at once
//!   query         pages of entities; a scan is cut into slices
//!   history       recent changes; why: what is known of an entity
//! ```

mod entities;
mod error;
mod history;
mod query;
mod tables;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

pub use entities::{Write, WrittenEntity};
pub use error::{TableError, TableResult};
pub use history::EntityExplanation;
pub use query::{EntityQuery, EntitySink, SLICE_ROWS};
pub use tables::{TablePage, TableQuery};

// What answers are made of, as front ends see it.
pub use crate::db::{DbError, SyncMode};
pub use crate::table::store::{EntityRef, StoredEntity};

use crate::clock::{Present, TimeSource};
use crate::db::counted::{CountingMemory, RisingCount};
use crate::db::sweeper::Sweeper;
use crate::db::{DbService, ServiceMemory};
use crate::journal::{AccountJournal, Change, History};
use crate::rules::address::ObjectAddress;
use crate::rules::context::Context;
use crate::rules::service::ServiceKind;
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

/// The state that requests under way share.
pub(crate) struct TableMemory {
    /// The timestamps of writes. They are `ETag`s too, so that one given twice would hide a change.
    count: RisingCount<Ticks>,
    history: History,
    present: Present,
    /// Wakes the sweeper. Rung by what was committed, so that it rings without the client too.
    bell: Arc<Bell>,
}

/// A change under way, in the writer's transaction.
pub(crate) struct TableChange<'a> {
    tx: &'a TableTx<'a>,
    memory: &'a TableMemory,
    context: &'a Context,
    now: Timestamp,
    changes: RefCell<Vec<Change>>,
    /// The change left rows that the sweeper is to remove.
    dropped: Cell<bool>,
}

impl TableService {
    /// Opens the database file, made if missing, and starts to remove what deleted tables left.
    pub fn open(file: &Path, sync: SyncMode, journal: AccountJournal) -> TableResult<Self> {
        let store = TableStore::open(file, sync)?;
        let count = RisingCount::above(store.ceiling()?);
        let history = History::new(journal, ServiceKind::Table);
        let (present, bell) = (Present::default(), Arc::default());
        let memory = TableMemory { count, history, present, bell };
        let store = Arc::new(store);
        let sweeper = tables::start_sweeper(Arc::clone(&store), Arc::clone(&memory.bell))?;
        Ok(Self { _sweeper: sweeper, store, memory: Arc::new(memory) })
    }

    /// An error if the files of the service have lost their names since they were opened.
    pub(crate) fn check_place(&self) -> Result<(), DbError> {
        self.store.database().check_place()
    }
}

impl DbService for TableService {
    type Memory = TableMemory;

    fn parts(&self) -> (&Arc<TableStore>, &Arc<TableMemory>) {
        (&self.store, &self.memory)
    }
}

impl ServiceMemory for TableMemory {
    type Store = TableStore;
    type Error = TableError;
    type Change<'a> = TableChange<'a>;
    type Effects = (Vec<Change>, bool, Option<Ticks>);

    fn begin<'a>(&'a self, tx: &'a TableTx<'_>, context: &'a Context) -> TableChange<'a> {
        let now = self.present.of(context.now);
        let (changes, dropped) = (RefCell::default(), Cell::default());
        TableChange { tx, memory: self, context, now, changes, dropped }
    }

    fn finish(&self, change: TableChange<'_>) -> TableResult<Self::Effects> {
        let ceiling = self.count.save(|ceiling| change.tx.set_tick_ceiling(ceiling))?;
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

impl CountingMemory<Ticks> for TableMemory {
    fn count(&self) -> &RisingCount<Ticks> {
        &self.count
    }

    fn rows_replaced(&self, clock: &Arc<dyn TimeSource>) {
        self.present.set_back(clock);
        self.history.clear();
        self.bell.ring();
    }
}

impl Drop for TableService {
    fn drop(&mut self) {
        self.store.end_at_last(&self.memory);
    }
}

impl TableChange<'_> {
    /// A timestamp later than all before.
    fn tick(&self) -> Ticks {
        self.memory.count.next(Ticks::of(self.now))
    }

    /// Has the history keep a change of a table as a whole, once it is committed.
    fn changed_table(&self, name: &TableName, operation: &str) {
        let by = self.writer(operation, self.now);
        let object = ObjectAddress::Table(name.to_string());
        self.context.changed(&object, (None, None), None);
        self.changes.borrow_mut().push(Change { object, etag: None, by });
    }

    /// The writer that an object changed by this request keeps.
    fn writer(&self, operation: &str, when: Timestamp) -> Writer {
        Writer { when, ..self.context.writer(operation) }
    }
}

fn table_of(tx: &TableTx<'_>, name: &TableName) -> TableResult<TableId> {
    Ok(tx.table_id(name)?.ok_or(TableDenial::TableNotFound)?)
}
