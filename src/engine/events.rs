//! The event log: who was granted, refused, closed. Bounded; observers follow it.
//!
//! Refusals and forced closes are always kept, grants and ordinary closes only on request, so
//! that the way of an undisturbed open stays short.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::core::{Access, HandleId, Owner, ShareMode, SharePath, Timestamp};
use std::sync::Arc;

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};

/// The most events kept; older ones are dropped and counted.
pub const EVENTS_MAX: usize = 16_384;

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
        /// The refusal, in words, naming the holder.
        why: String,
        /// The handle in the way, where there is one.
        holder: Option<HandleId>,
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
}

/// The bounded log.
#[derive(Debug)]
pub struct EventLog {
    kept: Mutex<Kept>,
    grew: Condvar,
    /// 1 if grants and closes are wanted too. Read without a lock on every open.
    all: AtomicU64,
    max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Event>,
    last: u64,
}

impl Default for EventLog {
    fn default() -> Self {
        Self::new(EVENTS_MAX)
    }
}

impl EventLog {
    /// A log of at most `max` events.
    pub fn new(max: usize) -> Self {
        let (kept, grew) = (Mutex::default(), Condvar::default());
        Self { kept, grew, all: AtomicU64::new(0), max: max.max(1) }
    }

    /// Keep grants and ordinary closes too, or stop doing so.
    pub fn keep_all(&self, all: bool) {
        self.all.store(u64::from(all), Ordering::Relaxed);
    }

    /// True if grants and ordinary closes are kept.
    pub fn keeps_all(&self) -> bool {
        self.all.load(Ordering::Relaxed) != 0
    }

    /// Adds an event; its number is given here.
    pub fn push(&self, mut event: Event) {
        let mut kept = self.kept.lock().expect("the log is only appended to");
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
        self.kept.lock().expect("the log is only appended to").after(seq)
    }

    /// The same, waiting up to `patience` for the first one.
    pub fn follow(&self, seq: u64, patience: Duration) -> Page {
        let end = Instant::now() + patience;
        let mut kept = self.kept.lock().expect("the log is only appended to");
        while kept.last <= seq {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Page::default();
            }
            kept = self.grew.wait_timeout(kept, left).expect("the log is only appended to").0;
        }
        kept.after(seq)
    }
}

impl Kept {
    fn after(&self, seq: u64) -> Page {
        let first = self.last - self.events.len() as u64 + 1;
        let wanted = seq.saturating_add(1);
        let lost = first.saturating_sub(wanted);
        let skip = usize::try_from(wanted.saturating_sub(first)).unwrap_or(usize::MAX);
        Page { events: self.events.iter().skip(skip).cloned().collect(), lost }
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
        assert_eq!(log.after(5), Page::default());
        assert_eq!(log.after(900), Page::default());
        assert_eq!(log.after(u64::MAX), Page::default());
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
}
