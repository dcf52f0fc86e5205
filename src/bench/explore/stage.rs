//! Where the requests of an exploration's clients wait for their turn.
//!
//! Decides which requests are scheduled: those of a client that has begun and has not ended. Later
//! ones are ended, so that they do not change the next run. When the next turn comes is decided in
//! [`super::live`]. An exploration that nobody asks about any more ends by itself, and leaves
//! nothing behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use super::live::{Live, LiveClient, Next, RunStage, Stance, Turn, Waiting, start_footprint};
use super::plan::{Plan, PlanOptions, Step, Verdict};
use super::quiet::{Watched, look};
use super::token::Choice;
use crate::bench::Controls;
use crate::bench::controls::{Place, Visitor};
use crate::bench::report::Finding;
use crate::clock::ClockChange;
use crate::rules::footprint::Time;
use crate::rules::who::{ClientBy, Who};

/// How long the requests of a run may take to end before the next run begins.
const DRAIN: Duration = Duration::from_secs(10);
/// The longest that a request waits for its turn.
const WAIT_MAX: Duration = Duration::from_hours(1);

/// Why a call about an exploration was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StageError {
    #[error("exploration {0} is under way, and a server has one at a time: end it, or wait for it")]
    Taken(u64),
    #[error("there is no exploration {0}")]
    Unknown(u64),
    #[error("exploration {0} has ended")]
    Ended(u64),
    #[error("run {0} is not under way: a run begins with POST /explorations/ID/runs")]
    NoRun(u64),
    #[error("there is no client {0} in this exploration, only {1}")]
    NoClient(String, String),
    #[error("{0} has not begun in this run, or has ended: say so before its first step")]
    NotStarted(String),
    #[error(
        "the requests of the run before have not ended after 10 s: a fault or a gate keeps one"
    )]
    AtWork,
    #[error("the server has no thread for an exploration: {0}")]
    NoThread(String),
}

/// What becomes of a request.
pub enum Entry {
    /// It is none of the exploration's.
    Passes,
    /// It came too late: it ends without an answer.
    Ends,
    Waits(Place, Staged),
}

/// A request of an exploration's client, until it is answered.
#[derive(Debug)]
pub struct Staged {
    controls: Arc<Controls>,
    request: u64,
    pub status: Option<u16>,
}

impl Drop for Staged {
    fn drop(&mut self) {
        let Self { controls, request, status } = self;
        controls.stage.with(|shown| shown.live.left(*request, *status));
    }
}

/// An exploration, under way or the last one.
pub struct Shown {
    pub live: Live,
    /// The findings on the run that failed.
    pub report: Vec<Finding>,
    pub ended: bool,
    restores: Option<String>,
    idle: Duration,
    owner: Option<Watched>,
    touched: Instant,
    /// Calls that wait for something.
    calls: usize,
    clock_stood: bool,
    /// Removes the keys of the clients.
    on_end: Option<Box<dyn FnOnce() + Send>>,
}

#[derive(Default)]
pub struct Stage {
    is_set: AtomicBool,
    shown: Mutex<Option<Shown>>,
    moved: Condvar,
    moved_async: Notify,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("is_set", &self.is_set).finish_non_exhaustive()
    }
}

/// How long an exploration waits for its owner and its clients.
#[derive(Clone, Debug)]
pub struct Patience {
    /// It ends after so long without a call or a request.
    pub idle: Duration,
    /// A client that cannot be looked at is blocked after so long.
    pub settle: Duration,
    /// The saved state that each run begins with.
    pub state: Option<String>,
    /// It ends with the process of the test.
    pub owner: Option<Watched>,
}

impl Stage {
    /// Whether an exploration is under way.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Shown>> {
        // Nothing in here panics half done.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.moved.notify_all();
        self.moved_async.notify_waiters();
    }

    /// Does something with the exploration, if there is one.
    fn with<T>(&self, work: impl FnOnce(&mut Shown) -> T) -> Option<T> {
        let done = self.lock().as_mut().map(work);
        self.tell();
        done
    }

    /// Does something with the exploration of that number. Its owner is there.
    pub fn of<T>(
        &self,
        id: u64,
        work: impl FnOnce(&mut Shown) -> Result<T, StageError>,
    ) -> Result<T, StageError> {
        let mut state = self.lock();
        let shown = state.as_mut().filter(|shown| shown.live.id == id);
        let shown = shown.ok_or(StageError::Unknown(id))?;
        shown.touched = Instant::now();
        let done = work(shown);
        drop(state);
        self.tell();
        done
    }

    /// The exploration under way, or the last one.
    pub fn shown<T>(&self, work: impl FnOnce(&Shown) -> T) -> Option<T> {
        self.lock().as_ref().map(work)
    }

    /// A run of an exploration under way.
    fn of_run<T>(
        &self,
        (id, run): (u64, u64),
        work: impl FnOnce(&mut Shown) -> Result<T, StageError>,
    ) -> Result<T, StageError> {
        self.of(id, |shown| {
            if shown.ended {
                return Err(StageError::Ended(id));
            }
            match &shown.live.run {
                Some(live) if live.number == run && !live.has_ended => work(shown),
                _ => Err(StageError::NoRun(run)),
            }
        })
    }
}

impl Shown {
    fn client(&mut self, name: &str) -> Result<&mut LiveClient, StageError> {
        let known: Vec<_> = self.live.clients.iter().map(|it| it.name.to_string()).collect();
        let found = self.live.client(name);
        found.ok_or_else(|| StageError::NoClient(name.to_owned(), known.join(", ")))
    }
}

impl Controls {
    /// Begins an exploration. `on_end` is called once, when it ends.
    pub fn explore(
        self: &Arc<Self>,
        options: PlanOptions,
        Patience { idle, settle, state: restores, owner }: Patience,
        on_end: Box<dyn FnOnce() + Send>,
    ) -> Result<u64, StageError> {
        let mut state = self.stage.lock();
        let last = state.as_ref().map_or(0, |shown| shown.live.id);
        if state.as_ref().is_some_and(|shown| !shown.ended) {
            return Err(StageError::Taken(last));
        }
        let id = last + 1;
        let clients = options.clients.iter().map(|name| LiveClient::new(Arc::clone(name)));
        let live = Live {
            id,
            clients: clients.collect(),
            plan: Plan::new(options),
            run: None,
            settle,
            stragglers: 0,
            strangers: 0,
            is_weak: false,
            notes: Vec::new(),
        };
        let controls = Arc::clone(self);
        let driver = thread::Builder::new().name("latchfs-explore".into());
        let driver = driver.spawn(move || controls.drive(id));
        driver.map_err(|error| StageError::NoThread(error.to_string()))?;
        *state = Some(Shown {
            live,
            report: Vec::new(),
            ended: false,
            restores,
            idle,
            owner,
            touched: Instant::now(),
            calls: 0,
            clock_stood: self.clock.stands(),
            on_end: Some(on_end),
        });
        self.stage.is_set.store(true, Ordering::Release);
        Ok(id)
    }

    /// Schedules the exploration until it ends.
    fn drive(self: &Arc<Self>, id: u64) {
        let mut state = self.stage.lock();
        loop {
            let Some(shown) = state.as_mut().filter(|it| it.live.id == id && !it.ended) else {
                return;
            };
            let idle = shown.idle.saturating_sub(shown.touched.elapsed());
            let is_idle = idle.is_zero() && shown.calls == 0;
            if is_idle || shown.owner.as_ref().is_some_and(|owner| !owner.is_here()) {
                let why = if is_idle {
                    format!("nobody asked about it for {} s", shown.idle.as_secs())
                } else {
                    "the process of its test has ended".to_owned()
                };
                shown.live.note(format!("it ended by itself: {why}"));
                drop(state);
                // An error says that its owner has ended it meanwhile.
                drop(self.end_exploration(id));
                return;
            }
            let live = &mut shown.live;
            match live.next() {
                Next::Wait(time) => {
                    let time = time.min(idle.max(Duration::from_millis(1)));
                    let waited = self.stage.moved.wait_timeout(state, time);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Next::Look(clients) => {
                    let epoch = live.epoch();
                    drop(state);
                    let seen = look(&clients);
                    state = self.stage.lock();
                    if let Some(shown) = state.as_mut() {
                        shown.live.saw(epoch, seen);
                    }
                }
                Next::Choose(ready) => match live.choose(ready) {
                    Some((choice, turn)) => self.carry_out(live, &choice, turn),
                    None => _ = self.halt(live),
                },
                Next::Ended => _ = self.halt(live),
            }
        }
    }

    /// Ends what waits for its turn in a run that goes on no further. How much that was.
    fn halt(&self, live: &mut Live) -> u64 {
        let waiting = live.take_waiting();
        let count = waiting.len() as u64;
        for turn in waiting {
            if let Turn::Request(id) = turn {
                self.gates.end_staged(id);
            }
        }
        self.stage.tell();
        count
    }

    fn carry_out(&self, live: &Live, choice: &Choice, turn: Option<Turn>) {
        match (choice, turn) {
            (Choice::Advance(ms), _) => {
                // It is never set back.
                let _ = self.clock.turn(ClockChange::Advance(Duration::from_millis(*ms)));
            }
            (_, Some(Turn::Request(id))) => self.gates.release_staged(id, choice.is_drop()),
            (_, Some(Turn::Call(answer))) => {
                // A caller that is gone does nothing.
                let _ = answer.send(live.plan.order.len() as u64);
            }
            (_, None) => {}
        }
    }

    /// A request of a client, or of somebody else. `step` describes it.
    pub fn enter_stage(
        self: &Arc<Self>,
        who: &Who,
        thread: Option<u32>,
        visitor: impl FnOnce() -> Visitor,
        step: impl FnOnce() -> Step,
    ) -> Entry {
        if !self.stage.is_set() {
            return Entry::Passes;
        }
        let mut state = self.stage.lock();
        let Some(shown) = state.as_mut().filter(|shown| !shown.ended) else {
            return Entry::Passes;
        };
        let live = &mut shown.live;
        let named = who.named.as_ref();
        let named = named.filter(|it| matches!(it.by, ClientBy::Key | ClientBy::Header));
        let is_meant = |client: &&LiveClient| {
            named.is_some_and(|named| named.name == client.name)
                || thread.is_some_and(|thread| client.process.has(thread))
        };
        let Some(client) = live.clients.iter().find(is_meant) else {
            let step = step();
            if step.footprint.time == Some(Time::Leases) {
                live.plan.leases(step.footprint.writes);
            }
            live.strangers += u64::from(live.has_begun());
            return Entry::Passes;
        };
        let (name, stance, was_started) =
            (Arc::clone(&client.name), client.stance, client.was_started);
        shown.touched = Instant::now();
        if !live.is_running() || stance != Stance::Started {
            if !was_started {
                return Entry::Passes;
            }
            live.stragglers += 1;
            return Entry::Ends;
        }
        let place = self.gates.enter_stage(visitor(), WAIT_MAX);
        let staged = Staged { controls: Arc::clone(self), request: place.id, status: None };
        let turn = Turn::Request(place.id);
        live.waits(&name, Waiting { step: step(), turn, starts: false });
        drop(state);
        self.stage.tell();
        Entry::Waits(place, staged)
    }

    /// Ends the run before, replaces the data by `replace`, and begins the next run. Its number
    /// and its phase; none if the exploration is done. May wait.
    pub fn begin_run<E: From<StageError>>(
        &self,
        id: u64,
        replace: impl FnOnce(Option<String>) -> Result<(), E>,
    ) -> Result<Option<(u64, &'static str)>, E> {
        let state = self.stage.of(id, |shown| {
            if shown.ended {
                return Err(StageError::Ended(id));
            }
            if let Some(run) = &mut shown.live.run {
                run.has_ended = true;
            }
            shown.live.stragglers += self.halt(&mut shown.live);
            shown.calls += 1;
            Ok(shown.restores.clone())
        })?;
        let begun = self.drain(id).map_err(E::from).and_then(|()| replace(state));
        let begun = begun.map(|()| {
            self.stage.of(id, |shown| {
                let phase = shown.live.plan.begin();
                if phase == super::plan::Phase::Done {
                    return Ok(None);
                }
                shown.live.begin();
                Ok(Some((shown.live.plan.runs, phase.name())))
            })
        });
        let _ = self.stage.of(id, |shown| {
            shown.calls -= 1;
            Ok(())
        });
        Ok(begun??)
    }

    /// Waits until no request of a client is being carried out.
    fn drain(&self, id: u64) -> Result<(), StageError> {
        let end = Instant::now() + DRAIN;
        let mut state = self.stage.lock();
        loop {
            match state.as_ref().filter(|shown| shown.live.id == id) {
                None => return Err(StageError::Unknown(id)),
                Some(shown) if !shown.live.is_at_work() => return Ok(()),
                Some(_) => {}
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StageError::AtWork);
            }
            let waited = self.stage.moved.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A client begins. It may do so when the receiver has its word.
    pub fn client_starts(
        &self,
        (id, run, name): (u64, u64, &str),
        process: Watched,
    ) -> Result<oneshot::Receiver<u64>, StageError> {
        let (answer, begins) = oneshot::channel();
        self.stage.of_run((id, run), |shown| {
            let client = shown.client(name)?;
            client.is_parallel |= process.is_many();
            (client.stance, client.was_started, client.process) = (Stance::Started, true, process);
            // The same for all runs: what has a time limit does not run out by chance.
            let _ = self.clock.turn(ClockChange::Freeze);
            if shown.live.plan.orders_starts {
                let (operation, object) = ("begin".to_owned(), String::new());
                let footprint = start_footprint();
                let step = Step { operation, object, fingerprint: 0, footprint, can_drop: false };
                shown.live.waits(name, Waiting { step, turn: Turn::Call(answer), starts: true });
            } else {
                // The receiver is here.
                let _ = answer.send(0);
                shown.live.happened();
            }
            Ok(())
        })?;
        Ok(begins)
    }

    /// A client has ended.
    pub fn client_finished(&self, (id, run, name): (u64, u64, &str)) -> Result<(), StageError> {
        self.stage.of_run((id, run), |shown| {
            let client = shown.client(name)?;
            client.stance = Stance::Finished;
            let late: Vec<_> = client.waiting.drain(..).collect();
            shown.live.stragglers += late.len() as u64;
            for waiting in late {
                if let Turn::Request(request) = waiting.turn {
                    self.gates.end_staged(request);
                }
            }
            shown.live.happened();
            Ok(())
        })
    }

    /// A client is ready for a step that the server does not see by itself.
    pub fn client_steps(
        &self,
        (id, run, name): (u64, u64, &str),
        step: Step,
    ) -> Result<oneshot::Receiver<u64>, StageError> {
        let (answer, chosen) = oneshot::channel();
        self.stage.of_run((id, run), |shown| {
            let is_running = shown.live.is_running();
            let client = shown.client(name)?;
            if client.stance != Stance::Started || !is_running {
                return Err(StageError::NotStarted(name.to_owned()));
            }
            let turn = Turn::Call(answer);
            shown.live.waits(name, Waiting { step, turn, starts: false });
            Ok(())
        })?;
        Ok(chosen)
    }

    /// Waits until the run goes on no further, for at most so long.
    pub async fn watch_run(&self, id: u64, run: u64, patience: Duration) -> Result<(), StageError> {
        self.stage.of_run((id, run), |shown| {
            shown.calls += 1;
            Ok(())
        })?;
        let _waits = CallWait { stage: &self.stage, id };
        let goes_on = || {
            let shown = self.stage.lock();
            shown
                .as_ref()
                .is_some_and(|shown| shown.live.id == id && !shown.ended && shown.live.is_running())
        };
        let wait = async {
            loop {
                let moved = self.stage.moved_async.notified();
                tokio::pin!(moved);
                moved.as_mut().enable();
                if !goes_on() {
                    return;
                }
                moved.await;
            }
        };
        // The end of the patience is an answer too.
        drop(tokio::time::timeout(patience, wait).await);
        Ok(())
    }

    /// Ends a run with the verdict of its test. True if another run is to begin.
    pub fn end_run(
        &self,
        (id, run): (u64, u64),
        failed: Option<String>,
    ) -> Result<bool, StageError> {
        self.stage.of_run((id, run), |shown| {
            let live = &mut shown.live;
            let Some(run) = &mut live.run else { return Err(StageError::NoRun(run)) };
            run.has_ended = true;
            let mismatched = run.stage == RunStage::Mismatch;
            let verdict = Verdict { failed, blocked: run.blocked, mismatched };
            live.stragglers += self.halt(live);
            Ok(live.plan.end(verdict))
        })
    }

    /// Ends an exploration. What it has found stays until the next one begins.
    pub fn end_exploration(&self, id: u64) -> Result<(), StageError> {
        let on_end = self.stage.of(id, |shown| {
            if shown.ended {
                return Err(StageError::Ended(id));
            }
            shown.ended = true;
            if let Some(run) = &mut shown.live.run {
                run.has_ended = true;
            }
            shown.live.stragglers += self.halt(&mut shown.live);
            if !shown.clock_stood {
                // It goes on from where it stands.
                let _ = self.clock.turn(ClockChange::Run);
            }
            self.stage.is_set.store(false, Ordering::Release);
            Ok(shown.on_end.take())
        })?;
        if let Some(on_end) = on_end {
            on_end();
        }
        Ok(())
    }

    /// Ends the exploration that is under way, if one is: the server stops.
    pub fn end_explorations(&self) {
        if let Some(id) = self.stage.shown(|shown| shown.live.id) {
            // It may have ended already.
            drop(self.end_exploration(id));
        }
    }
}

/// A call that waits: its exploration does not end meanwhile.
struct CallWait<'a> {
    stage: &'a Stage,
    id: u64,
}

impl Drop for CallWait<'_> {
    fn drop(&mut self) {
        let _ = self.stage.of(self.id, |shown| {
            shown.calls -= 1;
            Ok(())
        });
    }
}
