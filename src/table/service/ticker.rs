//! Timestamps that only rise: over clock steps and over restarts.
//!
//! Decides the timestamp of each write. Timestamps are ETags too, so that one given twice would
//! hide a change. A ceiling in the database lies at or above every timestamp that was committed.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::db::DbError;
use crate::rules::Timestamp;
use crate::table::rules::Ticks;
use crate::table::store::TableTx;

/// How far the ceiling is raised at once, one second: it is written once in that time, and after
/// a crash timestamps run ahead of the clock by at most that.
const STEP: i64 = 10_000_000;

pub(super) struct Ticker {
    last: AtomicI64,
    /// The ceiling that is committed.
    ceiling: AtomicI64,
    /// Where this start began.
    first: Ticks,
}

impl Ticker {
    /// Begins above `ceiling`.
    pub(super) fn new(ceiling: Ticks) -> Self {
        Self { last: AtomicI64::new(ceiling.0), ceiling: AtomicI64::new(ceiling.0), first: ceiling }
    }

    /// The time, or right after the last timestamp if that lies ahead.
    pub(super) fn next(&self, now: Timestamp) -> Ticks {
        let now = Ticks::of(now).0;
        let later = |last: i64| now.max(last.saturating_add(1));
        let before = self.last.update(Ordering::SeqCst, Ordering::SeqCst, later);
        Ticks(later(before))
    }

    /// Raises the ceiling in a change's transaction if it lies below the last timestamp. The
    /// caller tells by [`Ticker::saved`] that it is committed.
    pub(super) fn save(&self, tx: &TableTx<'_>) -> Result<Option<Ticks>, DbError> {
        let last = self.last.load(Ordering::SeqCst);
        if last <= self.ceiling.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let ceiling = Ticks(last.saturating_add(STEP));
        tx.set_tick_ceiling(ceiling)?;
        Ok(Some(ceiling))
    }

    /// The ceiling is committed.
    pub(super) fn saved(&self, ceiling: Ticks) {
        self.ceiling.fetch_max(ceiling.0, Ordering::SeqCst);
    }

    /// Goes on above `last`. The ceiling that is committed is not below it.
    pub(super) fn raise(&self, last: Ticks) {
        self.last.fetch_max(last.0, Ordering::SeqCst);
        self.saved(last);
    }

    /// The last timestamp, or the ceiling of the start if none was given since.
    pub(super) fn latest(&self) -> Ticks {
        Ticks(self.last.load(Ordering::SeqCst))
    }

    /// The last timestamp, if one was given since the start.
    pub(super) fn last(&self) -> Option<Ticks> {
        let last = self.latest();
        (last > self.first).then_some(last)
    }
}
