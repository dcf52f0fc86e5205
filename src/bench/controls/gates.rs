//! Gates: a request that matches stops at a point of its way until it is released.
//!
//! Decides which requests stop, and for how long: a gate releases a request by itself after its
//! limit, which the system's clock counts. A request that waits holds no latch and no lock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::{Controls, is_over, make_room};
use crate::bench::explore::Staged;
use crate::journal::row::AtGate;
use crate::journal::{Event, Journal};
use crate::rules::gate::{Point, Visitor};
use crate::rules::pattern::{Pattern, PatternSubject};

/// A gate to add.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewGate {
    pub pattern: Pattern,
    pub point: Point,
    /// How many, the next ones; all without it.
    pub times: Option<u32>,
    /// How long each waits at most.
    pub limit: Duration,
}

/// A gate as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GateRow {
    pub id: u64,
    /// The gate as it was added; `times` counts the requests that may still stop.
    pub gate: NewGate,
    /// How many requests wait at it.
    pub waiting: usize,
    /// How many have stopped at it so far.
    pub stopped: u64,
}

/// A request that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingRow {
    pub id: u64,
    /// The gate that it waits at.
    pub gate: u64,
    pub visitor: Visitor,
    /// For how long it has waited.
    pub since: Duration,
}

/// The gates of a server.
#[derive(Debug, Default)]
pub struct Gates {
    journal: Arc<Journal>,
    count: AtomicUsize,
    state: Mutex<GateTable>,
    /// A request has stopped, or gone on.
    moved: Condvar,
    /// The same, for tasks.
    moved_async: Notify,
}

#[derive(Debug, Default)]
struct GateTable {
    last_gate: u64,
    last_request: u64,
    gates: Vec<GateRow>,
    waiting: Vec<WaitingRequest>,
    /// What the journal was told of requests that are still at a gate.
    told: BTreeMap<u64, Box<AtGate>>,
}

#[derive(Debug)]
struct WaitingRequest {
    id: u64,
    gate: u64,
    visitor: Visitor,
    since: Instant,
    limit: Duration,
    /// Dropped to let the request go; sends what becomes of it instead.
    release: oneshot::Sender<Word>,
}

/// What becomes of a request that is not simply let go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    End,
    DropAnswer,
}

/// The request ends at its gate: all data was replaced, or a test has it end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndedAtGate;

/// How a request came past the gates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passed {
    AtOnce,
    /// After it had stopped.
    Released,
    /// The same, and its answer is to be dropped.
    AnswerDropped,
}

/// The gate of an exploration, at which all requests of its clients stop. It is in no list, and
/// only the exploration lets its requests go.
const STAGE: u64 = 0;

/// A place at a gate.
#[derive(Debug)]
pub struct Place {
    pub id: u64,
    released: oneshot::Receiver<Word>,
    /// How long the request waits at most.
    limit: Duration,
}

/// Takes a request out of those that wait, however its wait ends: its client may go away.
struct GateWait<'a> {
    gates: &'a Gates,
    id: u64,
}

impl GateRow {
    /// True if the gate stops this request at this point.
    fn stops(&self, point: Point, seen: &PatternSubject<'_>) -> bool {
        let gate = &self.gate;
        gate.point == point && !is_over(gate.times) && gate.pattern.matches(seen)
    }
}

impl Drop for GateWait<'_> {
    fn drop(&mut self) {
        self.gates.leave(self.id);
    }
}

/// A call that has stopped and has no task to wait in: its owner asks from time to time whether it
/// was released. Dropping the value ends the wait.
#[derive(Debug)]
pub struct Stopped {
    controls: Arc<Controls>,
    place: Place,
    _staged: Option<Staged>,
}

impl Stopped {
    /// How long it waits at most.
    pub fn limit(&self) -> Duration {
        self.place.limit
    }

    /// How the wait has ended; `None` while it lasts. A call of a mount has no answer to drop.
    pub fn end(&mut self) -> Option<Result<(), EndedAtGate>> {
        match self.place.released.try_recv() {
            Ok(Word::End) => Some(Err(EndedAtGate)),
            Ok(Word::DropAnswer) | Err(TryRecvError::Closed) => Some(Ok(())),
            Err(TryRecvError::Empty) => None,
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.controls.gates.leave(self.place.id);
    }
}

impl Controls {
    /// Stops a call at the first gate of that point that the call fits. `None` if it goes on.
    pub fn stop(
        self: &Arc<Self>,
        point: Point,
        seen: &PatternSubject<'_>,
        visitor: impl FnOnce() -> Visitor,
    ) -> Option<Stopped> {
        if !self.gates.are_set() {
            return None;
        }
        let place = self.gates.take_place(|row| row.stops(point, seen), visitor)?;
        Some(Stopped { controls: Arc::clone(self), place, _staged: None })
    }

    /// A call of a client of an exploration waits for its turn.
    pub fn staged(self: &Arc<Self>, place: Place, staged: Staged) -> Stopped {
        Stopped { controls: Arc::clone(self), place, _staged: Some(staged) }
    }
}

impl Gates {
    /// Gates that tell this journal of the requests that stop and go on.
    pub fn told_of_in(journal: Arc<Journal>) -> Self {
        Self { journal, ..Self::default() }
    }

    /// Adds a gate. If there are too many, the oldest one whose times are over and where nobody
    /// waits makes room; `None` if there is none.
    pub fn add(&self, gate: NewGate) -> Option<u64> {
        let mut state = self.lock();
        let GateTable { gates, waiting, .. } = &mut *state;
        let is_empty = |id| waiting.iter().all(|one| one.gate != id);
        make_room(gates, |row| is_over(row.gate.times) && is_empty(row.id))?;
        state.last_gate += 1;
        let id = state.last_gate;
        state.gates.push(GateRow { id, gate, waiting: 0, stopped: 0 });
        self.count.store(state.gates.len(), Ordering::Release);
        Some(id)
    }

    /// Removes one, or all, and lets those go that wait there. Returns how many gates there were.
    pub fn remove(&self, id: Option<u64>) -> usize {
        let mut state = self.lock();
        let before = state.gates.len();
        state.gates.retain(|row| id.is_some_and(|id| row.id != id));
        state.waiting.retain(|one| one.gate == STAGE || id.is_some_and(|id| one.gate != id));
        self.count.store(state.gates.len(), Ordering::Release);
        self.moved.notify_all();
        self.moved_async.notify_waiters();
        before - state.gates.len()
    }

    /// All gates, oldest first.
    pub fn list(&self) -> Vec<GateRow> {
        let state = self.lock();
        let waiting = |id| state.waiting.iter().filter(|one| one.gate == id).count();
        state.gates.iter().map(|row| GateRow { waiting: waiting(row.id), ..row.clone() }).collect()
    }

    /// The requests that wait, in the order they came.
    pub fn waiting(&self) -> Vec<WaitingRow> {
        let state = self.lock();
        let row = |one: &WaitingRequest| WaitingRow {
            id: one.id,
            gate: one.gate,
            visitor: one.visitor.clone(),
            since: one.since.elapsed(),
        };
        state.waiting.iter().map(row).collect()
    }

    /// Whether there are any gates.
    pub fn are_set(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Lets requests go: the one of that number, or those of a gate, or all; the first `count`.
    /// Returns how many went.
    pub fn release(&self, request: Option<u64>, gate: Option<u64>, count: Option<usize>) -> usize {
        let mut left = count.unwrap_or(usize::MAX);
        let mut state = self.lock();
        let before = state.waiting.len();
        state.waiting.retain(|one| {
            let meant = one.gate != STAGE
                && request.is_none_or(|id| one.id == id)
                && gate.is_none_or(|id| one.gate == id);
            let goes = meant && left > 0;
            left -= usize::from(goes);
            !goes
        });
        self.moved.notify_all();
        self.moved_async.notify_waiters();
        before - state.waiting.len()
    }

    /// Lets a request go, and has its answer dropped. False if it waits nowhere.
    pub fn release_unanswered(&self, request: u64) -> bool {
        self.send(Word::DropAnswer, |one| one.gate != STAGE && one.id == request) > 0
    }

    /// Ends a request that waits. False if it waits nowhere.
    pub fn end(&self, request: u64) -> bool {
        self.send(Word::End, |one| one.gate != STAGE && one.id == request) > 0
    }

    /// Ends the requests that wait: all data was replaced, or the server stops.
    pub fn end_all(&self) {
        self.send(Word::End, |_| true);
    }

    /// Has a request of an exploration's client go on, and drops its answer if that is wanted.
    pub(in crate::bench) fn release_staged(&self, request: u64, drops_answer: bool) {
        if drops_answer {
            self.send(Word::DropAnswer, |one| one.id == request);
        } else {
            self.lock().waiting.retain(|one| one.id != request);
        }
    }

    /// Ends a request of an exploration's client.
    pub(in crate::bench) fn end_staged(&self, request: u64) {
        self.send(Word::End, |one| one.id == request);
    }

    /// Takes a place at the gate of an exploration, which waits for no longer than this.
    pub(in crate::bench) fn enter_stage(&self, visitor: Visitor, limit: Duration) -> Place {
        self.enter(&mut self.lock(), (STAGE, Point::Received, limit), visitor)
    }

    /// Tells waiting requests what becomes of them. Returns how many they are.
    fn send(&self, word: Word, is_meant: impl Fn(&WaitingRequest) -> bool) -> usize {
        let mut state = self.lock();
        let meant: Vec<_> = state.waiting.extract_if(.., |one| is_meant(one)).collect();
        let count = meant.len();
        for WaitingRequest { id, release, .. } in meant {
            if word == Word::End
                && let Some(told) = state.told.remove(&id)
            {
                let account = Arc::clone(&told.visitor.account);
                self.journal.push(Some(account), Event::Abandoned(told));
            }
            // A client that went away meanwhile has ended its request itself.
            let _ = release.send(word);
        }
        self.moved.notify_all();
        self.moved_async.notify_waiters();
        count
    }

    /// Waits until `count` requests wait at a gate. Returns how many do at the end.
    pub fn wait_for(&self, gate: u64, count: usize, patience: Duration) -> usize {
        let end = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            let there = state.waiting.iter().filter(|one| one.gate == gate).count();
            let left = end.saturating_duration_since(Instant::now());
            if there >= count || left.is_zero() {
                return there;
            }
            state = match self.moved.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Waits until `count` requests wait at a gate, and tells how many do; `None` if the gate is
    /// gone.
    pub async fn fill(&self, gate: u64, count: usize) -> Option<usize> {
        loop {
            let moved = self.moved_async.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            {
                let state = self.lock();
                let there = state.waiting.iter().filter(|one| one.gate == gate).count();
                if !state.gates.iter().any(|row| row.id == gate) {
                    return None;
                }
                if there >= count {
                    return Some(there);
                }
            }
            moved.await;
        }
    }

    /// Stops at the first gate of that point that the request fits.
    pub async fn pass(
        &self,
        point: Point,
        seen: &PatternSubject<'_>,
        visitor: impl FnOnce() -> Visitor,
    ) -> Result<Passed, EndedAtGate> {
        if !self.are_set() {
            return Ok(Passed::AtOnce);
        }
        match self.take_place(|row| row.stops(point, seen), visitor) {
            None => Ok(Passed::AtOnce),
            Some(place) => self.wait(place).await,
        }
    }

    /// Waits at a gate.
    pub async fn wait(&self, place: Place) -> Result<Passed, EndedAtGate> {
        let Place { id, released, limit } = place;
        let _waits = GateWait { gates: self, id };
        match timeout(limit, released).await {
            Ok(Ok(Word::End)) => return Err(EndedAtGate),
            Ok(Ok(Word::DropAnswer)) => return Ok(Passed::AnswerDropped),
            // The sender is gone, which releases the request.
            Ok(Err(_)) => {}
            Err(_) => {
                log::info!("a request waited at its gate for {} s and goes on", limit.as_secs());
            }
        }
        Ok(Passed::Released)
    }

    /// Takes a place at the first gate that `stops` accepts.
    fn take_place(
        &self,
        stops: impl Fn(&GateRow) -> bool,
        visitor: impl FnOnce() -> Visitor,
    ) -> Option<Place> {
        let mut state = self.lock();
        let row = state.gates.iter_mut().find(|row| stops(row))?;
        row.stopped += 1;
        row.gate.times = row.gate.times.map(|left| left.saturating_sub(1));
        let at = (row.id, row.gate.point, row.gate.limit);
        Some(self.enter(&mut state, at, visitor()))
    }

    fn enter(
        &self,
        state: &mut GateTable,
        (gate, point, limit): (u64, Point, Duration),
        visitor: Visitor,
    ) -> Place {
        state.last_request += 1;
        let id = state.last_request;
        let (release, released) = oneshot::channel();
        let since = Instant::now();
        if self.journal.records_all() {
            let account = Arc::clone(&visitor.account);
            let visitor = visitor.clone();
            let told = AtGate { gate, point, request: id, visitor, timed_out: false };
            let told = Box::new(told);
            // Under the lock: no release is told before its stop.
            self.journal.push(Some(account), Event::Gated(told.clone()));
            state.told.insert(id, told);
        }
        state.waiting.push(WaitingRequest { id, gate, visitor, since, limit, release });
        self.moved.notify_all();
        self.moved_async.notify_waiters();
        Place { id, released, limit }
    }

    fn leave(&self, id: u64) {
        let mut state = self.lock();
        // A release takes the request out of the list, and a request that nobody releases goes on
        // after its limit: any other end of the wait is that of a client that went away.
        let left = state.waiting.iter().position(|one| one.id == id);
        let left = left.map(|index| state.waiting.remove(index));
        let timed_out = left.as_ref().is_some_and(|one| one.since.elapsed() >= one.limit);
        let is_abandoned = left.is_some() && !timed_out;
        let told = state.told.remove(&id);
        self.moved.notify_all();
        self.moved_async.notify_waiters();
        drop(state);
        if let Some(mut told) = told {
            told.timed_out = timed_out;
            let account = Arc::clone(&told.visitor.account);
            let event = if is_abandoned { Event::Abandoned } else { Event::Released };
            self.journal.push(Some(account), event(told));
        }
    }

    fn lock(&self) -> MutexGuard<'_, GateTable> {
        // Nothing in here panics half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Reads;
    use crate::rules::asked::Asked;
    use crate::rules::service::ServiceKind;
    use crate::rules::who::Who;

    const LONG: Duration = Duration::from_mins(5);

    fn gate(times: Option<u32>, limit: Duration) -> NewGate {
        NewGate { pattern: Pattern::default(), point: Point::Received, times, limit }
    }

    async fn pass(gates: Arc<Gates>, point: Point) -> bool {
        let nothing = |_: &str| None;
        let seen = PatternSubject {
            service: ServiceKind::Table,
            operation: "TableInsertEntity",
            documented: "Insert Entity",
            account: "a",
            path: "Rows",
            header: &nothing,
        };
        let visitor = || Visitor {
            service: seen.service,
            account: seen.account.into(),
            operation: seen.operation.into(),
            path: seen.path.into(),
            who: Who::default(),
            client_request: None,
            user_agent: None,
            asked: Asked::default(),
        };
        gates.pass(point, &seen, visitor).await == Ok(Passed::Released)
    }

    #[tokio::test]
    async fn requests_stop_until_they_are_let_go_one_by_one() {
        let gates = Arc::new(Gates::default());
        assert!(!pass(Arc::clone(&gates), Point::Received).await, "no gate");
        let id = gates.add(gate(None, LONG)).unwrap();
        assert!(!pass(Arc::clone(&gates), Point::Committed).await, "another point");
        let mut stopped = Vec::new();
        for count in 1..=3 {
            stopped.push(tokio::spawn(pass(Arc::clone(&gates), Point::Received)));
            while gates.wait_for(id, count, Duration::ZERO) < count {
                tokio::task::yield_now().await;
            }
        }
        let rows = gates.waiting();
        assert_eq!(gates.release(Some(rows[1].id), None, None), 1);
        assert!(stopped.remove(1).await.unwrap());
        assert_eq!(gates.release(None, Some(id), Some(1)), 1);
        assert!(stopped.remove(0).await.unwrap(), "in the order they came");
        assert_eq!((gates.list()[0].waiting, gates.list()[0].stopped), (1, 3));
        // A client that goes away does not stay in the list.
        let last = stopped.remove(0);
        last.abort();
        assert!(last.await.unwrap_err().is_cancelled());
        assert!(gates.waiting().is_empty());
    }

    #[tokio::test]
    async fn the_journal_is_told_of_a_stop_and_of_its_end() {
        let journal = Arc::new(Journal::default());
        let rows = || journal.after(0, 9, Reads::All).rows;
        let gates = Arc::new(Gates::told_of_in(Arc::clone(&journal)));
        let id = gates.add(gate(None, Duration::from_millis(1))).unwrap();
        assert!(pass(Arc::clone(&gates), Point::Received).await);
        let kept = rows();
        let [stopped, went] = kept.as_slice() else { panic!("{kept:?}") };
        let Event::Gated(at) = &*stopped.event else { panic!("{stopped:?}") };
        assert_eq!((at.gate, at.request, &*at.visitor.path), (id, 1, "Rows"));
        assert!(
            matches!(&*went.event, Event::Released(at) if at.request == 1 && at.timed_out),
            "{went:?}"
        );
        assert_eq!(went.account.as_deref(), Some("a"));
        gates.remove(Some(id));
        // A client that goes away does not go on.
        let id = gates.add(gate(None, LONG)).unwrap();
        let stopped = tokio::spawn(pass(Arc::clone(&gates), Point::Received));
        while gates.wait_for(id, 1, Duration::ZERO) < 1 {
            tokio::task::yield_now().await;
        }
        stopped.abort();
        assert!(stopped.await.unwrap_err().is_cancelled());
        let last = rows().pop().unwrap();
        assert!(matches!(&*last.event, Event::Abandoned(at) if at.request == 2), "{last:?}");
    }

    #[tokio::test]
    async fn a_replacement_of_all_data_ends_requests_that_wait_and_no_others() {
        let journal = Arc::new(Journal::default());
        let gates = Arc::new(Gates::told_of_in(Arc::clone(&journal)));
        let id = gates.add(gate(None, LONG)).unwrap();
        for went_on in [false, true] {
            let stopped = tokio::spawn(pass(Arc::clone(&gates), Point::Received));
            while gates.wait_for(id, 1, Duration::ZERO) < 1 {
                tokio::task::yield_now().await;
            }
            if went_on {
                gates.release(None, None, None);
            }
            gates.end_all();
            assert_eq!(stopped.await.unwrap(), went_on);
            assert!(gates.waiting().is_empty());
            let last = journal.after(0, 9, Reads::All).rows.pop().unwrap();
            assert_eq!(matches!(&*last.event, Event::Released(_)), went_on, "{last:?}");
            assert_eq!(matches!(&*last.event, Event::Abandoned(_)), !went_on, "{last:?}");
        }
        assert_eq!(gates.list().len(), 1, "the gate stays");
    }

    #[tokio::test]
    async fn a_gate_lets_go_after_its_limit_and_stops_so_many() {
        let gates = Arc::new(Gates::default());
        gates.add(gate(Some(1), Duration::from_millis(5))).unwrap();
        assert!(pass(Arc::clone(&gates), Point::Received).await);
        assert!(!pass(Arc::clone(&gates), Point::Received).await, "its times are over");
    }

    #[tokio::test]
    async fn the_end_of_a_gate_lets_its_requests_go() {
        let gates = Arc::new(Gates::default());
        let id = gates.add(gate(None, LONG)).unwrap();
        let stopped = tokio::spawn(pass(Arc::clone(&gates), Point::Received));
        while gates.wait_for(id, 1, Duration::ZERO) < 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!((gates.remove(None), gates.are_set()), (1, false));
        assert!(stopped.await.unwrap());
    }
}
