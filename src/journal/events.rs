//! The event log of an account: who was granted, refused, closed. Bounded; observers follow it from
//! threads. The stream of a server ([`super::stream`]) has the same events and more.
//!
//! Refusals and forced closes are always kept, grants and ordinary closes only on request, so that
//! an open without a conflict costs little. Grants and closes are noted under the file's lock: in
//! the log, the close of an open precedes the grant that it made possible.
//!
//! Adding to the log never waits for a follower: a follower that is too slow is told how many
//! events it missed.

use std::time::{Duration, Instant};

use crate::file::rules::{Denial, SharePath};
use crate::rules::conflict::Conflict;
use crate::rules::service::ServiceKind;
use crate::rules::{Access, FileId, HandleId, Owner, Rule, ShareMode, Timestamp};
use std::sync::{Arc, OnceLock};

use super::programs::resolved;
use super::ring::{PAGE_MAX, Ring, RingPage};
use super::stream::{EventStream, StreamEvent};
use crate::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering};

const POISON: &str = "the log is only appended to";

/// The most events kept; older ones are dropped and counted.
pub const EVENTS_MAX: usize = 16_384;

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// An open was granted.
    Granted { handle: HandleId, access: Access, share: ShareMode },
    /// Something was refused by a rule.
    Refused {
        /// The refused operation: `open`, `delete`, `put range`.
        operation: &'static str,
        /// The rule, and who was in the way.
        denial: Denial,
    },
    /// A request to the Blob, Queue or Table service was refused because of another client.
    Conflicted(Box<Conflicted>),
    /// The share mode of an open was changed.
    Shared {
        handle: HandleId,
        /// Its new share mode.
        share: ShareMode,
    },
    Closed {
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

impl Happening {
    /// True for events of every open that meets no conflict.
    fn is_ordinary(&self) -> bool {
        matches!(
            self,
            Self::Granted { .. } | Self::Shared { .. } | Self::Closed { forced: false, .. }
        )
    }
}

/// A request to the Blob, Queue or Table service that was refused because of another client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicted {
    pub service: ServiceKind,
    /// The object as the command line names it, without the service: `docs/a.txt`.
    pub object: String,
    pub operation: &'static str,
    /// The act of the other client that refused it.
    pub conflict: Conflict,
    /// The code of the answer.
    pub code: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// The message of the answer, which names the other client where it is known.
    pub message: String,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    pub time: Timestamp,
    /// In which share; empty where the event is not of the File service.
    pub share: Arc<str>,
    pub path: SharePath,
    /// The identity of the file, if the file is open.
    pub file: Option<FileId>,
    pub who: Owner,
    /// The content of the event.
    pub what: Happening,
}

#[derive(Debug)]
pub struct EventLog {
    kept: Mutex<Ring<Event>>,
    grew: Condvar,
    /// How many threads wait for an event: without them an addition costs no system call. Changed
    /// and read under the lock of `kept`.
    waiting: AtomicU64,
    /// 1 if grants and closes are wanted too. Read without a lock on every open.
    all: AtomicU64,
    /// The stream of the server, and the account that this log is of.
    stream: OnceLock<(Arc<EventStream>, Arc<str>)>,
    /// Conflicts since the start, by the number of their rule.
    conflicts: [AtomicU64; Rule::ALL.len()],
    /// Refusals of the other services since the start, by the numbers of service and conflict.
    refusals: [[AtomicU64; Conflict::ALL.len()]; ServiceKind::ALL.len()],
}

impl Default for EventLog {
    fn default() -> Self {
        Self::new(EVENTS_MAX)
    }
}

impl EventLog {
    /// A log of at most `max` events.
    pub fn new(max: usize) -> Self {
        let (kept, grew) = (Mutex::new(Ring::new(max)), Condvar::default());
        let conflicts = std::array::from_fn(|_| AtomicU64::new(0));
        let refusals = std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0)));
        let (waiting, all, stream) = (AtomicU64::new(0), AtomicU64::new(0), OnceLock::new());
        Self { kept, grew, waiting, all, stream, conflicts, refusals }
    }

    /// Keep grants and ordinary closes too, or stop doing so.
    pub fn keep_all(&self, all: bool) {
        self.all.store(u64::from(all), Ordering::Relaxed);
    }

    /// Adds all events of this log, that of `account`, to the stream as well, grants and ordinary
    /// closes included. A second stream is not taken.
    pub fn feed(&self, stream: Arc<EventStream>, account: Arc<str>) {
        drop(self.stream.set((stream, account)));
    }

    /// True if grants and ordinary closes are wanted, here or in the stream.
    pub fn keeps_all(&self) -> bool {
        self.all.load(Ordering::Relaxed) != 0 || self.stream.get().is_some()
    }

    /// How many conflicts each rule has refused since the start, kept here or not.
    pub fn conflicts(&self) -> impl Iterator<Item = (Rule, u64)> {
        let count = |rule: Rule| self.conflicts[rule as usize].load(Ordering::Relaxed);
        Rule::ALL.into_iter().map(move |rule| (rule, count(rule)))
    }

    /// How many requests to the Blob, Queue and Table services each conflict has refused since the
    /// start, kept here or not.
    pub fn refusals(&self) -> impl Iterator<Item = (ServiceKind, Conflict, u64)> {
        let services = [ServiceKind::Blob, ServiceKind::Queue, ServiceKind::Table];
        services.into_iter().flat_map(move |service| {
            let counts = &self.refusals[service as usize];
            let count = |conflict: Conflict| counts[conflict as usize].load(Ordering::Relaxed);
            Conflict::ALL.into_iter().map(move |conflict| (service, conflict, count(conflict)))
        })
    }

    /// Adds an event; its number is given here. The program of a process that was refused, closed
    /// a handle by force or deleted a share is looked up now: the process may have ended when
    /// somebody reads the log. Opens, ordinary closes and deletions of files are too many for that.
    pub fn push(&self, mut event: Event) {
        if let Happening::Refused { denial, .. } = &event.what
            && let Some(rule) = denial.rule()
        {
            self.conflicts[rule as usize].fetch_add(1, Ordering::Relaxed);
        }
        let is_frequent =
            event.what.is_ordinary() || (event.what == Happening::Removed && !event.path.is_root());
        if !is_frequent {
            event.who = resolved(&event.who);
        }
        if let Happening::Conflicted(conflicted) = &event.what {
            let counts = &self.refusals[conflicted.service as usize];
            counts[conflicted.conflict as usize].fetch_add(1, Ordering::Relaxed);
        }
        if let Some((stream, account)) = self.stream.get() {
            stream.push(Some(Arc::clone(account)), || StreamEvent::Logged(event.clone()));
            if event.what.is_ordinary() && self.all.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
        let mut kept = self.kept.lock().expect(POISON);
        let oldest = kept.push(|seq| Event { seq, ..event });
        let is_awaited = self.waiting.load(Ordering::Relaxed) > 0;
        // Freed after the lock.
        drop(kept);
        drop(oldest);
        if is_awaited {
            self.grew.notify_all();
        }
    }

    /// The events after number `seq`, as far as they are kept.
    pub fn after(&self, seq: u64) -> RingPage<Event> {
        self.kept.lock().expect(POISON).after(seq, usize::MAX)
    }

    /// The events after number `seq`, at most [`PAGE_MAX`] of them; waits up to `patience` for the
    /// first one.
    pub fn follow(&self, seq: u64, patience: Duration) -> RingPage<Event> {
        self.wait_past(seq, patience).after(seq, PAGE_MAX)
    }

    /// The number of the newest event.
    pub fn newest(&self) -> u64 {
        self.kept.lock().expect(POISON).newest()
    }

    /// Waits up to `patience` for an event after number `seq`.
    pub fn wait(&self, seq: u64, patience: Duration) {
        drop(self.wait_past(seq, patience));
    }

    fn wait_past(&self, seq: u64, patience: Duration) -> MutexGuard<'_, Ring<Event>> {
        let end = Instant::now() + patience;
        let mut kept = self.kept.lock().expect(POISON);
        while kept.newest() <= seq {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.waiting.fetch_add(1, Ordering::Relaxed);
            kept = self.grew.wait_timeout(kept, left).expect(POISON).0;
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Client;

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
    fn the_stream_gets_every_event_and_the_log_only_those_that_are_wanted() {
        let (log, stream) = (EventLog::new(3), Arc::new(EventStream::default()));
        stream.start();
        assert!(!log.keeps_all());
        log.feed(Arc::clone(&stream), "one".into());
        assert!(log.keeps_all());
        let closed = |forced| Happening::Closed { handle: HandleId(1), forced };
        for what in [closed(false), closed(true), Happening::Removed] {
            log.push(Event { what, ..event("a") });
        }
        assert_eq!(log.after(0).events.iter().map(|e| e.seq).collect::<Vec<_>>(), [1, 2]);
        let entries = stream.after(0).events;
        assert_eq!(entries.len(), 3);
        assert!(entries.iter().all(|entry| entry.account.as_deref() == Some("one")));
        log.keep_all(true);
        log.push(Event { what: closed(false), ..event("a") });
        assert_eq!((log.newest(), stream.after(0).newest), (3, 4));
    }

    #[test]
    fn refusals_of_other_services_are_counted_by_service_and_conflict() {
        let log = EventLog::new(1);
        for (service, conflict) in [
            (ServiceKind::Blob, Conflict::Lease),
            (ServiceKind::Blob, Conflict::Lease),
            (ServiceKind::Table, Conflict::Condition),
        ] {
            let what = Happening::Conflicted(Box::new(Conflicted {
                service,
                object: "docs/a".to_owned(),
                operation: "BlockBlobUpload",
                conflict,
                code: "LeaseIdMissing",
                status: 412,
                message: String::new(),
            }));
            log.push(Event { what, ..event("") });
        }
        let counted: Vec<_> = log.refusals().filter(|(.., count)| *count > 0).collect();
        let expected =
            [(ServiceKind::Blob, Conflict::Lease, 2), (ServiceKind::Table, Conflict::Condition, 1)];
        assert_eq!(counted, expected);
        assert!(log.conflicts().all(|(_, count)| count == 0));
    }

    #[test]
    fn a_follower_wakes_when_something_happens_and_not_before() {
        let log = Arc::new(EventLog::new(3));
        assert_eq!(log.follow(0, Duration::from_millis(1)).newest, 0);
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
    fn nobody_who_adds_to_a_full_log_waits_for_a_follower_that_stalls() {
        let log = EventLog::new(3);
        log.push(event("seen"));
        let seen = log.follow(0, Duration::ZERO).last;
        (0..10).for_each(|_| log.push(event("a")));
        let page = log.follow(seen, Duration::ZERO);
        assert_eq!((page.lost, page.events.len(), page.last), (7, 3, 11));
    }
}
