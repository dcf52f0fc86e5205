//! The event log: who was granted, refused, closed. Bounded; observers follow it.
//!
//! Refusals and forced closes are always kept, grants and ordinary closes only on request, so
//! that the way of an undisturbed open stays short. What changes who has a file open is noted
//! under that file's lock: in the log, too, an open that made room stands before the one that
//! took it.
//!
//! A follower that is too slow is told how much it missed. One [`Reader`] misses nothing: while it
//! is behind by the whole log, whoever would add to it waits. It must take no lock of the engine.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::core::{Access, Denial, FileId, HandleId, Owner, Rule, ShareMode, SharePath, Timestamp};
use std::sync::Arc;

use crate::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering};

const POISON: &str = "the log is only appended to";

/// The most events kept; older ones are dropped and counted.
pub const EVENTS_MAX: usize = 16_384;

/// The most events a follower or the reader is given at a time.
pub const PAGE_MAX: usize = 1_024;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// An open was granted.
    Granted {
        /// Its identity.
        handle: HandleId,
        /// What it may do.
        access: Access,
        /// What it tolerates.
        share: ShareMode,
    },
    /// Something was refused by a rule.
    Refused {
        /// What was asked for: `open`, `delete`, `put range`.
        operation: &'static str,
        /// The rule, and who was in the way.
        denial: Denial,
    },
    /// What an open tolerates was changed.
    Shared {
        /// Its identity.
        handle: HandleId,
        /// What it tolerates now.
        share: ShareMode,
    },
    /// An open ended.
    Closed {
        /// Its identity.
        handle: HandleId,
        /// By Force Close Handles.
        forced: bool,
    },
    /// A name became delete pending.
    MarkedForDeletion,
    /// The mark was taken away.
    Unmarked,
    /// A name was removed.
    Removed,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    /// When.
    pub time: Timestamp,
    /// In which share.
    pub share: Arc<str>,
    /// On which path.
    pub path: SharePath,
    /// Which file that is, where somebody has it open.
    pub file: Option<FileId>,
    /// Who acted.
    pub who: Owner,
    /// What happened.
    pub what: Happening,
}

/// A page of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The events after the number asked for, oldest first.
    pub events: Vec<Event>,
    /// How many of them had been dropped before they were asked for.
    pub lost: u64,
    /// The number of the last event looked at: the next page starts after it.
    pub last: u64,
    /// The number of the newest event there is.
    pub newest: u64,
}

/// The bounded log.
#[derive(Debug)]
pub struct EventLog {
    kept: Mutex<Kept>,
    grew: Condvar,
    /// The reader has taken something, or is gone.
    taken: Condvar,
    /// 1 if grants and closes are wanted too. Read without a lock on every open.
    all: AtomicU64,
    /// Conflicts since the start, by the number of their rule.
    conflicts: [AtomicU64; Rule::ALL.len()],
    max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Event>,
    last: u64,
    /// The number of the last event that the reader has, where there is one.
    read: Option<u64>,
}

impl Default for EventLog {
    fn default() -> Self {
        Self::new(EVENTS_MAX)
    }
}

impl EventLog {
    /// A log of at most `max` events.
    pub fn new(max: usize) -> Self {
        let (kept, grew, taken) = (Mutex::default(), Condvar::default(), Condvar::default());
        let conflicts = std::array::from_fn(|_| AtomicU64::new(0));
        Self { kept, grew, taken, all: AtomicU64::new(0), conflicts, max: max.max(1) }
    }

    /// Keep grants and ordinary closes too, or stop doing so.
    pub fn keep_all(&self, all: bool) {
        self.all.store(u64::from(all), Ordering::Relaxed);
    }

    /// True if grants and ordinary closes are kept.
    pub fn keeps_all(&self) -> bool {
        self.all.load(Ordering::Relaxed) != 0
    }

    /// How many conflicts each rule has refused since the start, kept here or not.
    pub fn conflicts(&self) -> impl Iterator<Item = (Rule, u64)> {
        let count = |rule: Rule| self.conflicts[rule as usize].load(Ordering::Relaxed);
        Rule::ALL.into_iter().map(move |rule| (rule, count(rule)))
    }

    /// Adds an event; its number is given here. Waits for a reader that is behind by the whole log.
    pub fn push(&self, mut event: Event) {
        if let Happening::Refused { denial, .. } = &event.what
            && let Some(rule) = denial.rule()
        {
            self.conflicts[rule as usize].fetch_add(1, Ordering::Relaxed);
        }
        let mut kept = self.kept.lock().expect(POISON);
        while kept.events.len() == self.max && kept.read.is_some_and(|read| read < kept.first()) {
            kept = self.taken.wait(kept).expect(POISON);
        }
        kept.last += 1;
        event.seq = kept.last;
        if kept.events.len() == self.max {
            kept.events.pop_front();
        }
        kept.events.push_back(event);
        drop(kept);
        self.grew.notify_all();
    }

    /// The events after number `seq`, as far as they are kept.
    pub fn after(&self, seq: u64) -> Page {
        self.kept.lock().expect(POISON).after(seq, usize::MAX)
    }

    /// The same, at most [`PAGE_MAX`] of them, waiting up to `patience` for the first one.
    pub fn follow(&self, seq: u64, patience: Duration) -> Page {
        self.wait_past(seq, patience).after(seq, PAGE_MAX)
    }

    /// Lets one reader follow that misses nothing from now on; none if there is one already.
    pub fn reader(self: &Arc<Self>) -> Option<Reader> {
        let mut kept = self.kept.lock().expect(POISON);
        if kept.read.is_some() {
            return None;
        }
        kept.read = Some(kept.last);
        Some(Reader { log: Arc::clone(self) })
    }

    fn wait_past(&self, seq: u64, patience: Duration) -> MutexGuard<'_, Kept> {
        let end = Instant::now() + patience;
        let mut kept = self.kept.lock().expect(POISON);
        while kept.last <= seq {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            kept = self.grew.wait_timeout(kept, left).expect(POISON).0;
        }
        kept
    }
}

impl Kept {
    /// The number of the oldest event that is kept, or will be.
    fn first(&self) -> u64 {
        self.last - self.events.len() as u64 + 1
    }

    fn after(&self, seq: u64, most: usize) -> Page {
        let first = self.first();
        let wanted = seq.saturating_add(1);
        let skip = usize::try_from(wanted.saturating_sub(first)).unwrap_or(usize::MAX);
        let events: Vec<_> = self.events.iter().skip(skip).take(most).cloned().collect();
        let last = events.last().map_or(seq.min(self.last), |event| event.seq);
        Page { events, lost: first.saturating_sub(wanted), last, newest: self.last }
    }
}

/// The one who misses nothing. Those who add to the log wait for it no longer once it is dropped.
#[derive(Debug)]
pub struct Reader {
    log: Arc<EventLog>,
}

impl Reader {
    /// The next events, at most [`PAGE_MAX`]; none if none came within `patience`.
    pub fn next(&mut self, patience: Duration) -> Vec<Event> {
        let seq = self.log.kept.lock().expect(POISON).read.unwrap_or_default();
        let mut kept = self.log.wait_past(seq, patience);
        let page = kept.after(seq, PAGE_MAX);
        kept.read = Some(page.last);
        drop(kept);
        self.log.taken.notify_all();
        page.events
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // A log that is poisoned is waited for by nobody.
        if let Ok(mut kept) = self.log.kept.lock() {
            kept.read = None;
        }
        self.log.taken.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Client;

    fn event(path: &str) -> Event {
        let client = Arc::new(Client { session: 1, name: "test".into() });
        Event {
            seq: 0,
            time: Timestamp(0),
            share: "s".into(),
            path: SharePath::new(path).unwrap(),
            file: None,
            who: Owner { client, pid: 0, program: None },
            what: Happening::Removed,
        }
    }

    #[test]
    fn a_reader_gets_each_event_once_and_is_told_what_it_missed() {
        let log = EventLog::new(3);
        for n in 0..5 {
            log.push(event(&n.to_string()));
        }
        let page = log.after(0);
        assert_eq!(page.lost, 2);
        assert_eq!(page.events.iter().map(|e| e.seq).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(log.after(4).events.len(), 1);
        for past in [5, 900, u64::MAX] {
            assert_eq!(log.after(past), Page { last: 5, newest: 5, ..Page::default() });
        }
    }

    #[test]
    fn conflicts_are_counted_by_rule_and_other_refusals_are_not() {
        let log = EventLog::new(1);
        for denial in [Denial::Leased, Denial::NotFound, Denial::Leased] {
            let what = Happening::Refused { operation: "open", denial };
            log.push(Event { what, ..event("a") });
        }
        let counted: Vec<_> = log.conflicts().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [(Rule::Lease, 2)]);
    }

    #[test]
    fn a_follower_wakes_when_something_happens_and_not_before() {
        let log = Arc::new(EventLog::new(3));
        assert_eq!(log.follow(0, Duration::from_millis(1)), Page::default());
        let writer = Arc::clone(&log);
        let thread = std::thread::spawn(move || writer.push(event("a")));
        let page = log.follow(0, Duration::from_secs(30));
        thread.join().unwrap();
        assert_eq!(page.events.len(), 1);
    }

    #[test]
    fn a_page_has_so_many_events_and_says_where_the_next_one_starts() {
        let log = EventLog::new(2 * PAGE_MAX);
        for _ in 0..=PAGE_MAX {
            log.push(event("a"));
        }
        let page = log.follow(0, Duration::ZERO);
        assert_eq!((page.events.len(), page.last), (PAGE_MAX, PAGE_MAX as u64));
        assert_eq!(log.follow(page.last, Duration::ZERO).events.len(), 1);
    }

    #[test]
    fn the_reader_is_waited_for_when_the_log_is_full_and_gets_every_event() {
        const COUNT: u64 = 1_000;
        let log = Arc::new(EventLog::new(3));
        log.push(event("before"));
        let mut reader = log.reader().unwrap();
        assert!(log.reader().is_none(), "there is one reader");
        let writer = {
            let log = Arc::clone(&log);
            std::thread::spawn(move || (0..COUNT).for_each(|_| log.push(event("a"))))
        };
        // At the bound the writer stands still: it is at most the whole log ahead.
        let end = Instant::now() + Duration::from_secs(30);
        while log.after(0).last < 4 {
            assert!(Instant::now() < end, "the log did not fill");
            std::thread::yield_now();
        }
        assert!(!writer.is_finished());
        assert_eq!(log.after(0).last, 4);
        let mut seen = Vec::new();
        while seen.len() < usize::try_from(COUNT).unwrap() {
            let page = reader.next(Duration::from_secs(30));
            assert!(!page.is_empty());
            seen.extend(page.iter().map(|event| event.seq));
        }
        writer.join().unwrap();
        assert_eq!(seen, (2..=COUNT + 1).collect::<Vec<_>>());
    }

    #[test]
    fn nobody_waits_for_a_reader_that_has_gone() {
        let log = Arc::new(EventLog::new(2));
        let reader = log.reader().unwrap();
        let writer = {
            let log = Arc::clone(&log);
            std::thread::spawn(move || (0..10).for_each(|_| log.push(event("a"))))
        };
        drop(reader);
        writer.join().unwrap();
        assert_eq!(log.after(0).lost, 8);
    }
}
