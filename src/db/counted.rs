//! Databases with a counter that never runs back: the ceiling of the counter, and all other rows
//! replaced by none or by those of a saved state, while no other write runs, or saved as they are
//! at one moment.
//!
//! Decides that the ceiling never falls, and that a saved state has the last count instead: else
//! each save and restore would add the distance to it. The store of a service decides what it
//! counts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rusqlite::{Connection, OptionalExtension, params};

use super::{Copy, DbError, DbService, HeldWriter, Purpose, RowStore, ServiceMemory, Tables};
use crate::clock::TimeSource;
use crate::disk::part::{HeldPart, NextData, Part, PartError, SavingPart};

/// How far a ceiling is raised at once, one second: it is written once in that time, and after a
/// crash counts run ahead of the clock by at most that.
const STEP: i64 = 10_000_000;

/// Tables whose rows stay: counters that never run back.
const KEPT: [&str; 1] = ["counters"];

/// A count, in the database of the one service that counts it.
pub trait StoredCount: std::marker::Copy + Default + Ord + std::fmt::Debug {
    /// The name of the database in a saved state.
    const FILE: &'static str;
    /// The name of the counter in the table `counters`.
    const NAME: &'static str;

    /// The count as a number.
    fn number(self) -> i64;
    /// The count of a number.
    fn of_number(number: i64) -> Self;
}

/// A count that no earlier one is above.
pub(crate) fn ceiling<C: StoredCount>(conn: &Connection) -> Result<C, DbError> {
    let mut select = conn.prepare_cached("SELECT value FROM counters WHERE name = ?1")?;
    let value = select.query_row([C::NAME], |row| row.get(0).map(C::of_number));
    Ok(value.optional()?.unwrap_or_default())
}

pub(crate) fn set_ceiling<C: StoredCount>(conn: &Connection, ceiling: C) -> Result<(), DbError> {
    let mut insert = conn.prepare_cached(
        "INSERT INTO counters (name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    )?;
    insert.execute(params![C::NAME, ceiling.number()])?;
    Ok(())
}

/// A count in units of 100 ns that only rises, over clock steps and over restarts. A ceiling in the
/// database lies at or above every count that was committed.
pub(crate) struct RisingCount<C> {
    last: AtomicI64,
    /// The ceiling that is committed.
    ceiling: AtomicI64,
    first: C,
}

impl<C: StoredCount> RisingCount<C> {
    /// Begins above `ceiling`.
    pub(crate) fn above(ceiling: C) -> Self {
        let (last, first) = (AtomicI64::new(ceiling.number()), ceiling);
        Self { last, ceiling: AtomicI64::new(ceiling.number()), first }
    }

    /// The count of a change at `now`: later than all before, also if the time stands.
    pub(crate) fn next(&self, now: C) -> C {
        let later = |last: i64| now.number().max(last.saturating_add(1));
        C::of_number(later(self.last.update(Ordering::SeqCst, Ordering::SeqCst, later)))
    }

    /// Raises the ceiling by `set`, in the transaction of the last change, if it lies below. The
    /// caller tells by [`RisingCount::saved`] that it is committed.
    pub(crate) fn save(
        &self,
        set: impl FnOnce(C) -> Result<(), DbError>,
    ) -> Result<Option<C>, DbError> {
        let last = self.latest().number();
        if last <= self.ceiling.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let ceiling = C::of_number(last.saturating_add(STEP));
        set(ceiling).map(|()| Some(ceiling))
    }

    pub(crate) fn saved(&self, ceiling: C) {
        self.ceiling.fetch_max(ceiling.number(), Ordering::SeqCst);
    }

    /// The last change, or the ceiling of the start if there was none since.
    pub(crate) fn latest(&self) -> C {
        C::of_number(self.last.load(Ordering::SeqCst))
    }

    /// The ceiling with which the next start goes on right after the last change; none if nothing
    /// was counted.
    pub(crate) fn at_the_end(&self) -> Option<C> {
        Some(self.latest()).filter(|last| *last > self.first)
    }
}

/// The state of a service in memory, as far as it follows from its rows as a whole. All methods are
/// called while the writer is held.
pub(crate) trait CountingMemory<C> {
    fn count(&self) -> &RisingCount<C>;

    /// All rows were replaced, and the clock may have been set back.
    fn rows_replaced(&self, clock: &Arc<dyn TimeSource>);
}

impl<R: Tables> RowStore<R> {
    /// A count that no earlier one is above.
    pub(crate) fn ceiling(&self) -> Result<R::Count, DbError> {
        self.database().read(ceiling::<R::Count>)
    }

    /// Lets the next start go on right after the last count. The writer reads which one that is:
    /// requests whose clients went away may still wait for it.
    pub(crate) fn end_at_last<M>(&self, memory: &Arc<M>)
    where
        M: CountingMemory<R::Count> + Send + Sync + 'static,
    {
        let memory = Arc::clone(memory);
        let lowered = self.database().write_for(Purpose::Delete, move |conn| {
            memory.count().at_the_end().map_or(Ok(()), |last| set_ceiling(conn, last))
        });
        if let Err(error) = lowered {
            let error: DbError = error;
            log::warn!("{}: the last change was not saved: {error}", R::Count::FILE);
        }
    }
}

/// All rows of a service but its counter.
pub(crate) struct RowsPart<'a, R, M> {
    store: &'a RowStore<R>,
    memory: &'a M,
    clock: &'a Arc<dyn TimeSource>,
}

struct HeldRows<'a, R: Tables, M> {
    part: &'a RowsPart<'a, R, M>,
    writer: HeldWriter<'a>,
    /// The last count before the restored state was saved.
    saved: R::Count,
}

struct SavingRows<'a, R: Tables, M> {
    part: &'a RowsPart<'a, R, M>,
    copy: Copy,
    writer: Option<HeldWriter<'a>>,
    last: R::Count,
}

impl<'a, R, M> RowsPart<'a, R, M>
where
    R: Tables,
    M: ServiceMemory<Store = RowStore<R>> + CountingMemory<R::Count>,
{
    pub(crate) fn of(
        service: &'a impl DbService<Memory = M>,
        clock: &'a Arc<dyn TimeSource>,
    ) -> Self {
        let (store, memory) = service.parts();
        Self { store, memory, clock }
    }
}

impl<R: Tables, M: CountingMemory<R::Count>> Part for RowsPart<'_, R, M> {
    fn hold(&self) -> Result<Box<dyn HeldPart + '_>, PartError> {
        let (writer, saved) = (self.store.database().hold(), R::Count::default());
        Ok(Box::new(HeldRows { part: self, writer, saved }))
    }

    fn save(&self, folder: &Path) -> Result<Box<dyn SavingPart + '_>, PartError> {
        let copy = self.store.database().copy(&folder.join(R::Count::FILE))?;
        Ok(Box::new(SavingRows { part: self, copy, writer: None, last: R::Count::default() }))
    }
}

impl<R: Tables, M> HeldRows<'_, R, M> {
    /// Replaces all rows by those of the database `saved`. Returns the last count in it.
    fn restore(&self, saved: &Path) -> Result<R::Count, DbError> {
        self.writer.attach(saved)?;
        self.writer.begin()?;
        self.writer.replace(&KEPT)?;
        let last = "SELECT coalesce(max(value), 0) FROM saved.counters WHERE name = ?1";
        self.writer.run(|conn| {
            let last = conn.query_row(last, [R::Count::NAME], |row| row.get(0))?;
            let last = R::Count::of_number(last);
            set_ceiling(conn, ceiling::<R::Count>(conn)?.max(last))?;
            Ok(last)
        })
    }
}

impl<R: Tables, M: CountingMemory<R::Count>> HeldPart for HeldRows<'_, R, M> {
    fn prepare(&mut self, next: &NextData<'_>) -> Result<(), PartError> {
        let saved = next.saved.map(|folder| folder.join(R::Count::FILE));
        if let Some(saved) = saved.filter(|file| file.exists()) {
            self.saved = self.restore(&saved).map_err(|error| self.writer.blame(error))?;
        } else {
            self.writer.begin()?;
            self.writer.empty(&KEPT)?;
        }
        Ok(self.writer.flush()?)
    }

    fn replace(&mut self, _: &NextData<'_>) -> Result<(), PartError> {
        Ok(self.writer.commit()?)
    }

    fn resume(&mut self, _: &NextData<'_>) -> Result<(), PartError> {
        let count = self.part.memory.count();
        count.last.fetch_max(self.saved.number(), Ordering::SeqCst);
        count.saved(self.saved);
        self.part.memory.rows_replaced(self.part.clock);
        Ok(())
    }
}

impl<R: Tables, M: CountingMemory<R::Count>> SavingPart for SavingRows<'_, R, M> {
    fn begin(&mut self) -> Result<(), PartError> {
        self.writer = Some(self.part.store.database().hold());
        self.last = self.part.memory.count().latest();
        Ok(self.copy.begin()?)
    }

    fn release(&mut self) {
        self.writer = None;
    }

    fn finish(self: Box<Self>) -> Result<Vec<String>, PartError> {
        let last = self.last.number();
        self.copy.finish(|conn| {
            let exact = "UPDATE copy.counters SET value = ?1 WHERE name = ?2";
            conn.execute(exact, params![last, R::Count::NAME])?;
            Ok(())
        })?;
        Ok(vec![R::Count::FILE.to_owned()])
    }
}

impl From<DbError> for PartError {
    fn from(error: DbError) -> Self {
        Self::new(&error, matches!(error, DbError::Full { .. }))
    }
}
