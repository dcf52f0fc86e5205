//! The rows that are kept: the newest ones, in memory, and the newest of those that are few and
//! tell more.
//!
//! Rows that come with every request and every open would displace a refusal within seconds, so
//! the two sorts have bounds of their own. Their numbers run through both. Adding a row never waits
//! for a follower: a follower that is too slow is told how many rows it missed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use super::row::{Event, FileEvent, Row};
use crate::clock::{TestClock, TimeSource};
use crate::rules::Noted;
use crate::rules::service::ServiceKind;
use crate::rules::who::{ClockSequence, ClockSequences};
use crate::sync::{Mutex, MutexGuard};

const POISON: &str = "nothing panics while the rows are held";

/// How many rows of requests, gates, faults, grants and ordinary closes are kept.
pub const PASSING_MAX: usize = 16_384;

/// How many of the other rows are kept.
pub const LASTING_MAX: usize = 32_768;

/// How much memory the lists of passing rows take at most, in bytes: a list of 256 objects takes as
/// much as a hundred requests.
pub const LISTS_BYTES: usize = 16 << 20;

/// The most rows that a follower is given at a time.
pub const PAGE_MAX: usize = 1_024;

/// The most new connections that wait to be looked up. Those beyond are looked up with their rows.
const ARRIVALS_MAX: usize = 64;

/// Which rows a read is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    All,
    /// Those for which [`Event::is_lasting`] holds.
    Lasting,
}

/// A page of rows.
#[derive(Clone, Debug)]
pub struct Page {
    /// The rows after the number asked for, oldest first.
    pub rows: Vec<Row>,
    /// How many of them had been dropped before they were asked for. For a read of lasting rows
    /// from the middle, at most so many.
    pub lost: u64,
    /// The number of the last row looked at: the next page starts after it.
    pub last: u64,
    /// The number of the newest row there is.
    pub newest: u64,
}

/// The journal of a server.
pub struct Journal {
    clock: Arc<dyn TimeSource>,
    /// Requests, gates, faults, grants and ordinary closes are recorded. Read on every open.
    records_all: AtomicBool,
    /// Grants and ordinary closes are listed with the refusals.
    lists_all: AtomicBool,
    kept: Mutex<Kept>,
    grew: Notify,
    /// The new connections.
    arrivals: Mutex<Vec<Arc<str>>>,
    arrived: Notify,
    threads: Mutex<ClockSequences>,
    /// Refusals because of another client since the start, by account, service and rule.
    refused: Mutex<RefusalCounts>,
}

type RefusalCounts = BTreeMap<(Arc<str>, ServiceKind, &'static str), u64>;

#[derive(Debug)]
struct Kept {
    newest: u64,
    passing: VecDeque<Row>,
    lasting: VecDeque<Row>,
    /// How much the lists of the passing rows take.
    lists: usize,
    /// How many lasting events were dropped, and the number of the last of them.
    dropped: u64,
    dropped_to: u64,
    /// How many rows of each sort are kept.
    max: [usize; 2],
}

impl Default for Journal {
    fn default() -> Self {
        Self::new(Arc::<TestClock>::default())
    }
}

impl Journal {
    /// A journal that tells the time by this clock.
    pub fn new(clock: Arc<dyn TimeSource>) -> Self {
        Self::keeping(clock, [PASSING_MAX, LASTING_MAX])
    }

    /// A journal of at most so many passing and lasting rows, at least one of each.
    pub fn keeping(clock: Arc<dyn TimeSource>, max: [usize; 2]) -> Self {
        let (passing, lasting) = (VecDeque::new(), VecDeque::new());
        let max = max.map(|max| max.max(1));
        Self {
            clock,
            records_all: AtomicBool::new(true),
            lists_all: AtomicBool::new(false),
            kept: Mutex::new(Kept {
                newest: 0,
                passing,
                lasting,
                lists: 0,
                dropped: 0,
                dropped_to: 0,
                max,
            }),
            grew: Notify::new(),
            arrivals: Mutex::default(),
            arrived: Notify::new(),
            threads: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// From now on requests, gates, faults, grants and ordinary closes are not recorded: they cost
    /// one load of a flag. For measurements.
    pub fn turn_off(&self) {
        self.records_all.store(false, Ordering::Relaxed);
    }

    pub fn records_all(&self) -> bool {
        self.records_all.load(Ordering::Relaxed)
    }

    /// Lists grants and ordinary closes with the refusals, in `latchfs events` and the event file.
    pub fn list_all(&self) {
        self.lists_all.store(true, Ordering::Relaxed);
    }

    pub fn lists_all(&self) -> bool {
        self.lists_all.load(Ordering::Relaxed)
    }

    /// Where a request notes what it reads and changes; none if requests are not recorded.
    pub fn noted(&self) -> Option<Arc<Noted>> {
        self.records_all().then(Arc::default)
    }

    /// The clock sequence of a request's ID, which tells the threads of a process apart.
    pub fn thread_of(&self, id: &str) -> Option<ClockSequence> {
        self.threads.lock().expect(POISON).of(id)
    }

    /// Adds a row; its number and its times are given here. Returns the number, 0 if the row is not
    /// recorded.
    pub fn push(&self, account: Option<Arc<str>>, event: Event) -> u64 {
        if !event.is_lasting() && !self.records_all() {
            return 0;
        }
        if let (Some(account), Some((service, rule))) = (&account, event.conflict()) {
            let mut refused = self.refused.lock().expect(POISON);
            *refused.entry((Arc::clone(account), service, rule)).or_default() += 1;
        }
        let (time, system) = (self.clock.now(), self.clock.outside());
        let event = Arc::new(event.kept());
        let mut kept = self.kept();
        let displaced = kept.push(Row { seq: 0, time, system, account, event });
        let seq = kept.newest;
        // Freed after the lock.
        drop(kept);
        drop(displaced);
        self.grew.notify_waiters();
        seq
    }

    /// The events after number `seq`, at most `most` of them. A number beyond the newest is one of
    /// another run of the server: all rows that are kept are returned then.
    pub fn after(&self, seq: u64, most: usize, reads: Reads) -> Page {
        self.kept().after(seq, most, reads)
    }

    /// Lasting rows that `wanted` takes something from, the latest first.
    pub fn latest<T>(&self, most: usize, wanted: impl FnMut(&Row) -> Option<T>) -> Vec<T> {
        self.kept().lasting.iter().rev().filter_map(wanted).take(most).collect()
    }

    /// The number of the newest row; zero if there was none.
    pub fn newest(&self) -> u64 {
        self.kept().newest
    }

    /// Waits for a row after number `seq`. Does not wait for numbers of another run.
    pub async fn wait_past(&self, seq: u64) {
        loop {
            let mut grew = std::pin::pin!(self.grew.notified());
            // Before the look: a row that comes after it wakes this.
            grew.as_mut().enable();
            if self.newest() != seq {
                return;
            }
            grew.await;
        }
    }

    /// A client has connected: its process is looked up while it is there, by who follows.
    pub fn connected(&self, client: &str) {
        let mut arrivals = self.arrivals.lock().expect(POISON);
        if self.records_all() && arrivals.len() < ARRIVALS_MAX {
            arrivals.push(client.into());
            self.arrived.notify_one();
        }
    }

    /// Waits for clients that connect. For one follower.
    pub async fn arrivals(&self) -> Vec<Arc<str>> {
        loop {
            let arrivals = std::mem::take(&mut *self.arrivals.lock().expect(POISON));
            if !arrivals.is_empty() {
                return arrivals;
            }
            self.arrived.notified().await;
        }
    }

    /// How many requests a rule refused in an account since the start because of another client,
    /// kept here or not.
    pub fn refused(&self, account: &Arc<str>, service: ServiceKind, rule: &'static str) -> u64 {
        let refused = self.refused.lock().expect(POISON);
        refused.get(&(Arc::clone(account), service, rule)).copied().unwrap_or_default()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect(POISON)
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Journal(up to {})", self.newest())
    }
}

impl Kept {
    /// Adds a row, and returns those that it displaces: mostly one, and more if its lists are long.
    /// `row` has no number yet.
    fn push(&mut self, mut row: Row) -> (Option<Row>, Vec<Row>) {
        self.newest += u64::from(!row.event.is_change());
        row.seq = self.newest;
        if row.event.is_lasting() {
            (self.push_lasting(row), Vec::new())
        } else {
            self.push_passing(row)
        }
    }

    fn push_lasting(&mut self, row: Row) -> Option<Row> {
        let is_full = self.lasting.len() >= self.max[1];
        let oldest = if is_full { self.lasting.pop_front() } else { None };
        self.lasting.push_back(row);
        if let Some(row) = oldest.as_ref().filter(|row| !row.event.is_change()) {
            self.dropped += 1;
            self.dropped_to = row.seq;
        }
        oldest
    }

    fn push_passing(&mut self, row: Row) -> (Option<Row>, Vec<Row>) {
        self.lists += row.event.lists_bytes();
        let oldest = if self.passing.len() >= self.max[0] { self.pop_passing() } else { None };
        let mut more = Vec::new();
        while self.lists > LISTS_BYTES
            && let Some(row) = self.pop_passing()
        {
            more.push(row);
        }
        self.passing.push_back(row);
        (oldest, more)
    }

    fn pop_passing(&mut self) -> Option<Row> {
        let oldest = self.passing.pop_front()?;
        self.lists -= oldest.event.lists_bytes();
        Some(oldest)
    }

    fn after(&self, seq: u64, most: usize, reads: Reads) -> Page {
        let seq = if seq > self.newest { 0 } else { seq };
        let tail = |rows: &VecDeque<Row>| rows.partition_point(|row| row.seq <= seq);
        let lasting = self.lasting.range(tail(&self.lasting)..);
        let mut lasting = lasting.filter(|row| !row.event.is_change()).peekable();
        let from = match reads {
            Reads::All => tail(&self.passing),
            Reads::Lasting => self.passing.len(),
        };
        let mut passing = self.passing.range(from..).peekable();
        let mut next = || match (lasting.peek(), passing.peek()) {
            (Some(one), Some(other)) if one.seq > other.seq => passing.next(),
            (Some(_), _) => lasting.next(),
            (None, _) => passing.next(),
        };
        let rows: Vec<Row> = std::iter::from_fn(&mut next).take(most).cloned().collect();
        let is_end = next().is_none();
        let last = if is_end { self.newest } else { rows.last().map_or(seq, |row| row.seq) };
        let lost = match reads {
            Reads::All => last - seq - rows.len() as u64,
            Reads::Lasting => self.dropped.min(self.dropped_to.saturating_sub(seq)),
        };
        Page { rows, lost, last, newest: self.newest }
    }
}

/// The journal as the services of one account write it.
#[derive(Clone, Debug)]
pub struct AccountJournal {
    journal: Arc<Journal>,
    account: Arc<str>,
}

impl Default for AccountJournal {
    /// A journal of its own, for a service without a server.
    fn default() -> Self {
        Self::new(Arc::default(), "")
    }
}

impl AccountJournal {
    pub fn new(journal: Arc<Journal>, account: impl Into<Arc<str>>) -> Self {
        Self { journal, account: account.into() }
    }

    /// Adds a row of this account.
    pub fn push(&self, event: Event) {
        self.journal.push(Some(Arc::clone(&self.account)), event);
    }

    /// The events of files that are kept, oldest first.
    pub fn file_events(&self) -> Vec<FileEvent> {
        let rows = self.journal.after(0, usize::MAX, Reads::All).rows;
        let of_files = rows.iter().filter_map(|row| match &*row.event {
            Event::File(event) => Some(event.clone()),
            _ => None,
        });
        of_files.collect()
    }

    /// The journal of the server.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    pub fn account(&self) -> &Arc<str> {
        &self.account
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{AnsweredRequest, Happening, RefusedRequest, ServerChange};
    use super::*;
    use crate::rules::address::ObjectAddress;
    use crate::rules::conflict::Conflict;
    use crate::rules::given::{Given, LISTED_MAX};
    use crate::rules::who::Who;
    use crate::rules::{Cause, Client, HandleId, Owner, RefusalKind, Rule, Spelled};

    fn who() -> Owner {
        let client = Arc::new(Client { session: 1, name: "test".into() });
        Owner { client, pid: 0, program: None }
    }

    fn file(what: Happening) -> Event {
        let path = "/a".to_owned();
        Event::File(FileEvent { share: "s".into(), path, file: None, who: who(), what })
    }

    fn closed() -> Event {
        file(Happening::Closed { handle: HandleId(1), forced: false })
    }

    fn cause(kind: RefusalKind) -> Cause {
        Cause { kind, spelled: Spelled::default(), message: String::new(), holder: None }
    }

    fn journal(max: [usize; 2]) -> Journal {
        Journal::keeping(Arc::<TestClock>::default(), max)
    }

    fn change(journal: &Journal) {
        let (by, detail) = (String::new(), "x".into());
        let change = ServerChange { kind: "clock", by, id: None, detail, is_barrier: false };
        journal.push(None, Event::Changed(change));
    }

    fn numbers(page: &Page) -> (u64, Vec<u64>, u64) {
        (page.lost, page.rows.iter().map(|row| row.seq).collect(), page.last)
    }

    #[test]
    fn a_journal_that_is_off_records_no_requests_and_no_grants() {
        let journal = Journal::default();
        assert_eq!(journal.push(None, closed()), 1);
        journal.turn_off();
        assert_eq!(journal.push(None, closed()), 0);
        assert!(journal.noted().is_none());
        assert_eq!(journal.push(None, file(Happening::Removed)), 2);
    }

    #[test]
    fn conflicts_are_counted_by_account_service_and_rule_and_other_refusals_are_not() {
        let journal = AccountJournal::new(Arc::new(journal([1, 1])), "one");
        for kind in [Rule::Lease.into(), RefusalKind::NotFound, Rule::Lease.into()] {
            let cause = Box::new(cause(kind));
            journal.push(file(Happening::Refused { operation: "open", cause }));
        }
        for (service, conflict) in [
            (ServiceKind::Blob, Conflict::Lease),
            (ServiceKind::Blob, Conflict::Lease),
            (ServiceKind::Table, Conflict::Condition),
        ] {
            let (object, operation) = ("docs/a".to_owned(), "Put Blob");
            let cause = cause(conflict.into());
            let refused =
                RefusedRequest { service, object, who: who(), client_by: None, operation, cause };
            journal.push(Event::Refused(Box::new(refused)));
        }
        let count = |service, rule| journal.journal().refused(journal.account(), service, rule);
        assert_eq!(count(ServiceKind::File, "lease"), 2);
        assert_eq!(count(ServiceKind::Blob, "lease"), 2);
        assert_eq!(count(ServiceKind::Table, "condition"), 1);
        assert_eq!(count(ServiceKind::Table, "lease"), 0);
        assert_eq!(journal.journal().refused(&"two".into(), ServiceKind::File, "lease"), 0);
    }

    #[test]
    fn a_follower_gets_each_row_once_and_is_told_what_it_missed() {
        let journal = journal([3, 3]);
        assert_eq!(numbers(&journal.after(7, 9, Reads::All)), (0, vec![], 0));
        (0..5).for_each(|_| change(&journal));
        let after = |seq, most| numbers(&journal.after(seq, most, Reads::All));
        assert_eq!(after(0, 9), (2, vec![3, 4, 5], 5));
        assert_eq!(after(0, 2), (2, vec![3, 4], 4));
        assert_eq!(after(1, 1), (1, vec![3], 3));
        assert_eq!(after(2, 9), (0, vec![3, 4, 5], 5));
        assert_eq!(after(4, 9), (0, vec![5], 5));
        assert_eq!(after(5, 9), (0, vec![], 5));
        // A number of another run of the server.
        assert_eq!(after(900, 9), (2, vec![3, 4, 5], 5));
    }

    #[test]
    fn long_lists_displace_rows_before_they_take_much_memory() {
        let object = || ObjectAddress::Container("box".into());
        let mut given = Given::default();
        (0..LISTED_MAX).for_each(|_| given.lists(object(), None));
        let listed = || {
            let begun = AnsweredRequest::of(ServiceKind::Blob, Who::default());
            Event::Request(Box::new(AnsweredRequest { given: given.clone(), ..begun }))
        };
        let journal = journal([PASSING_MAX, 1]);
        let fit = LISTS_BYTES / given.lists_bytes();
        (0..fit + 9).for_each(|_| assert_ne!(journal.push(None, listed()), 0));
        let page = journal.after(0, usize::MAX, Reads::All);
        assert_eq!((page.rows.len(), page.lost), (fit, 9));
    }

    #[test]
    fn what_comes_with_every_request_displaces_no_refusal() {
        let journal = journal([2, 2]);
        change(&journal);
        for _ in 0..4 {
            journal.push(None, closed());
        }
        change(&journal);
        journal.push(None, closed());
        assert_eq!(numbers(&journal.after(0, 9, Reads::All)), (3, vec![1, 5, 6, 7], 7));
        assert_eq!(numbers(&journal.after(0, 2, Reads::All)), (3, vec![1, 5], 5));
        assert_eq!(numbers(&journal.after(0, 9, Reads::Lasting)), (0, vec![1, 6], 7));
        change(&journal);
        assert_eq!(numbers(&journal.after(0, 9, Reads::Lasting)), (1, vec![6, 8], 8));
        assert_eq!(numbers(&journal.after(6, 9, Reads::Lasting)), (0, vec![8], 8));
        let latest = journal.latest(9, |row| (row.seq < 8).then_some(row.seq));
        assert_eq!(latest, [6]);
    }

    #[tokio::test]
    async fn a_follower_wakes_when_something_happens() {
        let journal = Arc::new(journal([3, 3]));
        change(&journal);
        let follower = tokio::spawn({
            let journal = Arc::clone(&journal);
            async move { journal.wait_past(1).await }
        });
        tokio::task::yield_now().await;
        assert!(!follower.is_finished());
        change(&journal);
        follower.await.unwrap();
        // Numbers of another run are not waited for.
        journal.wait_past(900).await;
    }
}
