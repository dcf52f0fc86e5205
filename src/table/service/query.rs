//! Query Entities: a page of a table, read along its keys in bounded slices.
//!
//! Decides where a page ends: at its most entities, its most bytes, or its most time. A slice is
//! one read transaction. A page does not go on into another slice within a partition that it has
//! entities of, so that a transaction is seen as a whole or not at all.

use std::mem;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::{TableResult, TableService, table_of};
use crate::db::Store as _;
use crate::table::rules::range::clipped;
use crate::table::rules::{EntityFields, EntityKey, Filter, Position, Range, TableName, Top};
use crate::table::store::{EntityRef, Scanned, TableTx};

/// Entities that one slice looks at.
pub const SLICE_ROWS: usize = 10_000;
/// The time after which a page ends.
const PAGE_TIME: Duration = Duration::from_secs(4);

/// The arguments of a query.
#[derive(Clone, PartialEq, Debug)]
pub struct EntityQuery {
    pub table: TableName,
    /// Which entities; none means all.
    pub filter: Option<Filter>,
    /// The most of a page.
    pub top: Top,
    /// Where to continue: the next entity.
    pub from: Option<EntityKey>,
    /// The keys that the caller may see.
    pub reach: Range,
}

impl EntityQuery {
    /// All entities of a table.
    pub fn all(table: TableName) -> Self {
        let top = Top(crate::table::rules::query::PAGE_MAX);
        Self { table, filter: None, top, from: None, reach: Range::ALL }
    }
}

/// Takes the entities of a page while they are read.
pub trait EntitySink: Send + 'static {
    /// Adds an entity. `Break` says that the page is full.
    fn add(&mut self, entity: &EntityRef<'_>) -> ControlFlow<()>;
}

/// The state of a page between slices.
struct PageProgress<P> {
    page: P,
    taken: usize,
    full: bool,
    /// The partition that the last taken entity is of.
    partition: Option<String>,
    /// The ranges that are left to read, the next one last.
    ranges: Vec<Range>,
}

/// Where a slice ended.
enum SliceEnd {
    Wholly,
    /// The page is complete; the next one begins at this entity.
    Complete(EntityKey),
    /// The slice is over; there may be more from this entity on.
    Cut(EntityKey),
}

impl TableService {
    /// Fills `page` with entities. Returns it with the key of the next page's first entity, if
    /// there may be a next page.
    pub fn query<P: EntitySink>(
        &self,
        query: &EntityQuery,
        page: P,
    ) -> TableResult<(P, Option<EntityKey>)> {
        let begun = Instant::now();
        let mut progress = PageProgress::new(page, query);
        loop {
            match self.store.read(|tx| progress.read_slice(tx, query))? {
                SliceEnd::Wholly => return Ok((progress.page, None)),
                SliceEnd::Complete(next) => return Ok((progress.page, Some(next))),
                SliceEnd::Cut(next)
                    if progress.is_full(query)
                        || begun.elapsed() > PAGE_TIME
                        || progress.partition.as_ref() == Some(&next.partition) =>
                {
                    return Ok((progress.page, Some(next)));
                }
                SliceEnd::Cut(_) => {}
            }
        }
    }
}

impl EntityQuery {
    /// The ranges to read, in the order of keys, the first one last.
    fn ranges(&self) -> Vec<Range> {
        let matched = self.filter.as_ref().map_or_else(|| vec![Range::ALL], Filter::ranges);
        let mut reach = self.reach.clone();
        if let Some(from) = &self.from {
            let rest = Range { start: Position::before(from.clone()), end: Position::End };
            reach = reach.within(&rest);
        }
        let mut ranges = clipped(&matched, &reach);
        ranges.reverse();
        ranges
    }
}

impl<P: EntitySink> PageProgress<P> {
    fn new(page: P, query: &EntityQuery) -> Self {
        Self { page, taken: 0, full: false, partition: None, ranges: query.ranges() }
    }

    fn is_full(&self, query: &EntityQuery) -> bool {
        self.full || self.taken == query.top.0
    }

    fn read_slice(&mut self, tx: &TableTx<'_>, query: &EntityQuery) -> TableResult<SliceEnd> {
        let mut rows = SLICE_ROWS;
        let table = table_of(tx, &query.table)?;
        if query.top.0 == 0 {
            return Ok(SliceEnd::Wholly);
        }
        while let Some(range) = self.ranges.pop() {
            let mut ended = None;
            let scanned = tx.scan(table, &range, |entity| {
                ended = self.take(entity, query, &mut rows);
                ended.is_none()
            })?;
            if let (Scanned::Stopped, Some(ended)) = (scanned, ended) {
                if let SliceEnd::Cut(next) = &ended {
                    let start = Position::before(next.clone());
                    self.ranges.push(Range { start, end: range.end });
                }
                return Ok(ended);
            }
        }
        Ok(SliceEnd::Wholly)
    }

    /// Looks at an entity, one of `rows` that the slice may still read, and takes it if it matches
    /// and there is room.
    fn take(
        &mut self,
        entity: &EntityRef<'_>,
        query: &EntityQuery,
        rows: &mut usize,
    ) -> Option<SliceEnd> {
        let key = || EntityKey::new(entity.partition(), entity.row());
        if *rows == 0 {
            return Some(SliceEnd::Cut(key()));
        }
        *rows -= 1;
        if query.filter.as_ref().is_some_and(|filter| !filter.matches(entity)) {
            return None;
        }
        if self.is_full(query) {
            return Some(SliceEnd::Complete(key()));
        }
        self.taken += 1;
        self.full = self.page.add(entity).is_break();
        let partition = mem::take(&mut self.partition);
        let same = partition.filter(|partition| partition == entity.partition());
        self.partition = Some(same.unwrap_or_else(|| entity.partition().to_owned()));
        None
    }
}
