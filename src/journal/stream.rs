//! The stream of events: what happens in a server, all accounts and services in one order.
//!
//! Each request with its answer, each entry of the logs of events, each gate and fault that a
//! request meets, and what tests change. Bounded: the newest entries are kept, long texts of
//! requests are cut, a follower that is too slow is told how many it missed, and adding an entry
//! never waits for a follower. A server without an admin address has no followers and keeps
//! nothing: an addition costs one load of a flag.
//!
//! Decides the order and how much is kept. How an entry is shown is decided in `api/control`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::events::Event;
use super::ring::{PAGE_MAX, Ring, RingPage};
use crate::clock::{TestClock, TimeSource};
use crate::file::rules::Denial;
use crate::rules::Timestamp;
use crate::rules::conflict::Conflict;
use crate::rules::gate::{Point, Visitor};
use crate::rules::service::ServiceKind;

/// The most entries kept; older ones are dropped and counted.
pub const STREAM_MAX: usize = 16_384;

/// The longest path and message that an entry keeps, in bytes. A request chooses both, and needs no
/// credentials for it.
pub const TEXT_MAX: usize = 1_024;

/// One entry of the stream.
#[derive(Clone, Debug)]
pub struct StreamEntry {
    /// Its number, from 1 in each run of the server, without gaps.
    pub seq: u64,
    /// When, by the clock of the server.
    pub time: Timestamp,
    /// When, by the clock of the system.
    pub system: Timestamp,
    /// In which account; none if it concerns the server.
    pub account: Option<Arc<str>>,
    /// The content of the entry.
    pub what: Arc<StreamEvent>,
}

/// The content of an entry.
#[derive(Debug)]
pub enum StreamEvent {
    /// An entry of the log of events of an account.
    Logged(Event),
    /// A request was answered.
    Request(AnsweredRequest),
    /// A request stopped at a gate.
    Gated(AtGate),
    /// A request that had stopped at a gate went on.
    Released(AtGate),
    /// The client of a request that had stopped at a gate went away, and the request ended there.
    Abandoned(AtGate),
    /// A request met a fault.
    Fault { fault: u64, visitor: Visitor },
    /// The clock, a gate, a fault or the state of the server was changed.
    Changed(ServerChange),
}

impl StreamEvent {
    /// The same with texts of at most [`TEXT_MAX`] bytes. Names in the log of events are those of
    /// objects that are there, which have bounds of their own.
    fn cut(mut self) -> Self {
        match &mut self {
            Self::Request(answered) => {
                cut(&mut answered.path);
                if let Some(refusal) = &mut answered.refusal {
                    cut(&mut refusal.message);
                }
            }
            Self::Gated(at) | Self::Released(at) | Self::Abandoned(at) => {
                cut(&mut at.visitor.path);
            }
            Self::Fault { visitor, .. } => cut(&mut visitor.path),
            Self::Logged(_) | Self::Changed(_) => {}
        }
        self
    }
}

/// Cuts a text off. The memory of the rest is given back.
fn cut(text: &mut String) {
    if text.len() > TEXT_MAX {
        *text = text[..text.floor_char_boundary(TEXT_MAX - '…'.len_utf8())].to_owned() + "…";
    }
}

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct AnsweredRequest {
    pub service: ServiceKind,
    /// The operation, as the service's documentation names it.
    pub operation: &'static str,
    /// The path of the request without the account.
    pub path: String,
    /// Who sent the request.
    pub client: String,
    /// The ID that the client gave the request.
    pub client_request: Option<Arc<str>>,
    /// The program that the client says it is.
    pub user_agent: Option<Arc<str>>,
    /// The ID that the server gave the request.
    pub request_id: String,
    /// The status of the answer; none if a fault closed the connection.
    pub status: Option<u16>,
    /// The error code of the answer, or nothing.
    pub code: String,
    /// How long the answer took to begin.
    pub took: Duration,
    /// Why the request was refused, if it was.
    pub refusal: Option<RefusalCause>,
}

/// Why a request was refused.
#[derive(Clone, Debug)]
pub struct RefusalCause {
    /// The message of the answer.
    pub message: String,
    /// The rule of the File service that refused, with the holder.
    pub denial: Option<Denial>,
    /// The act of another client that refused a request to the other services.
    pub conflict: Option<Conflict>,
}

/// A request at a gate.
#[derive(Clone, Debug)]
pub struct AtGate {
    pub gate: u64,
    /// Where the gate is.
    pub point: Point,
    /// The number of the request among those that waited.
    pub request: u64,
    pub visitor: Visitor,
}

/// A change of the clock, a gate, a fault or the state of the server.
#[derive(Clone, Debug)]
pub struct ServerChange {
    /// The kind of the change: `clock`, `gate-added`, `fault-removed`.
    pub kind: &'static str,
    pub by: String,
    /// The gate or the fault, where there is one.
    pub id: Option<u64>,
    /// More, in words: what the clock does, which state was restored.
    pub detail: String,
}

/// The stream of one server.
#[derive(Debug)]
pub struct EventStream {
    on: AtomicBool,
    clock: OnceLock<Arc<TestClock>>,
    kept: Mutex<Ring<StreamEntry>>,
    grew: Notify,
}

impl Default for EventStream {
    fn default() -> Self {
        Self::with(OnceLock::new(), STREAM_MAX)
    }
}

impl EventStream {
    /// A stream that tells the time by this clock, of at most `max` entries.
    pub fn new(clock: Arc<TestClock>, max: usize) -> Self {
        Self::with(clock.into(), max)
    }

    fn with(clock: OnceLock<Arc<TestClock>>, max: usize) -> Self {
        let (on, kept) = (AtomicBool::new(false), Mutex::new(Ring::new(max)));
        Self { on, clock, kept, grew: Notify::new() }
    }

    /// Keeps what happens from now on.
    pub fn start(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    /// True if what happens is kept.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Adds an entry, if they are kept.
    pub fn push(&self, account: Option<Arc<str>>, what: impl FnOnce() -> StreamEvent) {
        if !self.is_on() {
            return;
        }
        let (time, system) = match self.clock.get() {
            Some(clock) => (clock.now(), clock.outside()),
            None => (Timestamp(0), Timestamp(0)),
        };
        let what = Arc::new(what().cut());
        let mut kept = self.kept();
        let oldest = kept.push(|seq| StreamEntry { seq, time, system, account, what });
        // Freed after the lock.
        drop(kept);
        drop(oldest);
        self.grew.notify_waiters();
    }

    /// The entries after number `seq`, at most [`PAGE_MAX`]. A number beyond the newest is one of
    /// another run of the server: all entries that are kept are returned then.
    pub fn after(&self, seq: u64) -> RingPage<StreamEntry> {
        let kept = self.kept();
        kept.after(if seq > kept.newest() { 0 } else { seq }, PAGE_MAX)
    }

    /// Waits for an entry after number `seq`. Does not wait for numbers of another run.
    pub async fn wait_past(&self, seq: u64) {
        loop {
            let mut grew = std::pin::pin!(self.grew.notified());
            // Before the look: an entry that comes after it wakes this.
            grew.as_mut().enable();
            if self.kept().newest() != seq {
                return;
            }
            grew.await;
        }
    }

    fn kept(&self) -> MutexGuard<'_, Ring<StreamEntry>> {
        // Nothing in here panics half done.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(max: usize) -> EventStream {
        let stream = EventStream::new(Arc::default(), max);
        stream.start();
        stream
    }

    fn change(stream: &EventStream) {
        let change =
            || ServerChange { kind: "clock", by: String::new(), id: None, detail: "x".into() };
        stream.push(None, || StreamEvent::Changed(change()));
    }

    fn numbers(page: &RingPage<StreamEntry>) -> Vec<u64> {
        page.events.iter().map(|entry| entry.seq).collect()
    }

    #[test]
    fn a_stream_that_nobody_can_follow_keeps_nothing() {
        let stream = EventStream::default();
        stream.push(None, || unreachable!("nothing is made for it"));
        assert_eq!(stream.after(0).newest, 0);
    }

    #[test]
    fn a_follower_of_another_run_gets_all_entries_that_are_kept() {
        let stream = stream(3);
        (0..5).for_each(|_| change(&stream));
        for seq in [0, 900] {
            let page = stream.after(seq);
            assert_eq!((page.lost, numbers(&page), page.last), (2, vec![3, 4, 5], 5));
        }
        assert_eq!(numbers(&stream.after(5)), [0; 0]);
    }

    #[test]
    fn texts_that_a_request_chooses_are_cut_at_their_bound() {
        for (length, kept) in [(TEXT_MAX, TEXT_MAX), (TEXT_MAX + 1, TEXT_MAX), (60_000, TEXT_MAX)] {
            let mut text = "x".repeat(length);
            cut(&mut text);
            assert_eq!((text.len(), text.capacity() <= 2 * kept), (kept, true), "{length}");
            assert_eq!(text.ends_with('…'), length > TEXT_MAX);
        }
        // Between characters.
        let mut text = "ä".repeat(TEXT_MAX);
        cut(&mut text);
        assert!(text.len() <= TEXT_MAX && text.starts_with("ää") && text.ends_with("ä…"));
    }

    #[test]
    fn a_page_has_so_many_entries_and_says_where_the_next_one_starts() {
        let stream = stream(2 * PAGE_MAX);
        (0..=PAGE_MAX).for_each(|_| change(&stream));
        let page = stream.after(0);
        assert_eq!((page.events.len(), page.last), (PAGE_MAX, PAGE_MAX as u64));
        assert_eq!(numbers(&stream.after(page.last)), [PAGE_MAX as u64 + 1]);
    }

    #[tokio::test]
    async fn a_follower_wakes_when_something_happens() {
        let stream = Arc::new(stream(3));
        change(&stream);
        let follower = tokio::spawn({
            let stream = Arc::clone(&stream);
            async move { stream.wait_past(1).await }
        });
        tokio::task::yield_now().await;
        assert!(!follower.is_finished());
        change(&stream);
        follower.await.unwrap();
        // Numbers of another run are not waited for.
        stream.wait_past(900).await;
    }
}
