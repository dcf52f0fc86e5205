//! One exploration under way: where its clients are, and what is to be done about that.
//!
//! Decides when all clients are ready for the next step, and how a run ends. It is a value without
//! threads: [`super::stage`] holds it and does what it says; whether a process is blocked is
//! decided in [`super::quiet`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::plan::{Done, Halt, Plan, Step};
use super::quiet::{Seen, Watched};
use super::token::Choice;
use crate::rules::footprint::{Footprint, Resource};

/// How long all clients may be blocked before the run is stuck.
const STUCK: Duration = Duration::from_secs(5);
/// The same if some will go on by themselves. Longer than any pause that a test should have.
const STUCK_ASLEEP: Duration = Duration::from_mins(1);
/// How long a run waits for a client that never begins.
const START: Duration = Duration::from_secs(30);
/// The pause before a client that has just done something is looked at, and the longest pause.
const LOOK: (Duration, Duration) = (Duration::from_millis(3), Duration::from_millis(32));
/// A client that sleeps for longer is told.
const LONG_SLEEP: Duration = Duration::from_secs(1);

/// What a waiting client waits for.
pub enum Turn {
    /// A request at the gate of the exploration.
    Request(u64),
    /// A call of the API: the number of the step.
    Call(oneshot::Sender<u64>),
}

pub struct Waiting {
    pub step: Step,
    pub turn: Turn,
    pub starts: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stance {
    Expected,
    Started,
    Finished,
}

pub struct LiveClient {
    pub name: Arc<str>,
    pub stance: Stance,
    /// It has begun in some run.
    pub was_started: bool,
    pub process: Watched,
    pub waiting: Vec<Waiting>,
    /// Its requests that are being carried out.
    pub doing: Vec<(u64, Choice)>,
    pub last: Option<Done>,
    /// It may have several requests at once: more may come while one waits.
    pub is_parallel: bool,
    /// Since when it has slept.
    sleeps: Option<Instant>,
    pub is_blocked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunStage {
    Running,
    Over,
    Stuck,
    Livelock,
    Mismatch,
}

/// The run under way, or the last one.
pub struct LiveRun {
    pub number: u64,
    pub stage: RunStage,
    pub notes: Vec<String>,
    /// A client was blocked outside storage.
    pub blocked: bool,
    /// The owner has given its verdict.
    pub has_ended: bool,
    /// Counts what has happened.
    epoch: u64,
    last_event: Instant,
    /// What was seen of the clients, if nothing has happened since.
    seen: Option<(u64, Seen)>,
    pause: Duration,
    looked: Option<Instant>,
}

/// What is to be done.
pub enum Next {
    /// Nothing, until something happens or for so long.
    Wait(Duration),
    /// Look at these clients.
    Look(Vec<Watched>),
    /// These clients are ready for the next step.
    Choose(Vec<(Choice, Step)>),
    /// The run has ended.
    Ended,
}

pub struct Live {
    pub id: u64,
    pub plan: Plan,
    pub clients: Vec<LiveClient>,
    pub run: Option<LiveRun>,
    /// How long a client that cannot be looked at must be silent to count as blocked.
    pub settle: Duration,
    pub stragglers: u64,
    /// Requests of others while a run was under way.
    pub strangers: u64,
    /// A client was taken for blocked by its silence alone.
    pub is_weak: bool,
    pub notes: Vec<String>,
}

impl LiveClient {
    pub fn new(name: Arc<str>) -> Self {
        Self {
            name,
            stance: Stance::Expected,
            was_started: false,
            process: Watched::default(),
            waiting: Vec::new(),
            doing: Vec::new(),
            last: None,
            is_parallel: false,
            sleeps: None,
            is_blocked: false,
        }
    }

    /// It waits for its turn, and nothing else of it can come first.
    fn is_at_gate(&self) -> bool {
        !self.waiting.is_empty() && !self.is_parallel
    }

    fn choices(&self) -> impl Iterator<Item = (Choice, Step)> {
        (1..).zip(&self.waiting).map(|(nth, waiting)| {
            let name = Arc::clone(&self.name);
            let choice = if waiting.starts { Choice::Start(name) } else { Choice::Do(name, nth) };
            (choice, waiting.step.clone())
        })
    }
}

impl LiveRun {
    fn new(number: u64) -> Self {
        Self {
            number,
            stage: RunStage::Running,
            notes: Vec::new(),
            blocked: false,
            has_ended: false,
            epoch: 0,
            last_event: Instant::now(),
            seen: None,
            pause: LOOK.0,
            looked: None,
        }
    }

    fn happened(&mut self) {
        self.epoch += 1;
        self.last_event = Instant::now();
        (self.pause, self.looked) = (LOOK.0, None);
    }

    fn ends(&mut self, stage: RunStage, note: impl Into<String>) {
        self.stage = stage;
        let note = note.into();
        if !note.is_empty() {
            self.notes.push(note);
        }
    }
}

impl Live {
    /// Begins a run: all clients are expected.
    pub fn begin(&mut self) {
        self.run = Some(LiveRun::new(self.plan.runs));
        for client in &mut self.clients {
            let (name, was_started) = (Arc::clone(&client.name), client.was_started);
            let is_parallel = client.is_parallel;
            *client = LiveClient { was_started, is_parallel, ..LiveClient::new(name) };
        }
    }

    pub fn is_running(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.stage == RunStage::Running && !run.has_ended)
    }

    /// Whether a client has begun in the run under way.
    pub fn has_begun(&self) -> bool {
        self.is_running() && self.clients.iter().any(|it| it.stance != Stance::Expected)
    }

    pub fn happened(&mut self) {
        if let Some(run) = &mut self.run {
            run.happened();
        }
    }

    pub fn client(&mut self, name: &str) -> Option<&mut LiveClient> {
        self.clients.iter_mut().find(|client| *client.name == *name)
    }

    /// A client waits for its turn.
    pub fn waits(&mut self, name: &str, waiting: Waiting) {
        let Some(client) = self.client(name) else { return };
        let slept = client.sleeps.take().map(|since| since.elapsed());
        let what = waiting.step.label();
        client.waiting.push(waiting);
        // The order in which they came is chance.
        client.waiting.sort_by_key(|one| (one.step.label(), one.step.fingerprint));
        client.is_parallel |= client.waiting.len() + client.doing.len() > 1;
        client.is_blocked = false;
        if let Some(time) = slept.filter(|time| *time >= LONG_SLEEP) {
            let note = format!(
                "{name} slept {:.1} s before {what}: set the pauses of its retries",
                time.as_secs_f64()
            );
            self.note(note);
        }
        self.happened();
    }

    /// A sentence for the user, once, of a bounded number.
    pub fn note(&mut self, note: String) {
        const NOTES_MAX: usize = 50;
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// What the user must know, besides why the search is not complete.
    pub fn all_notes(&self) -> Vec<String> {
        let late = (self.stragglers > 0).then(|| {
            format!(
                "{} requests came after their client or their run had ended, and were dropped: \
                 end the threads of a client before it ends",
                self.stragglers
            )
        });
        self.notes.iter().cloned().chain(late).chain(self.plan.notes()).collect()
    }

    /// A request that waited or was carried out has ended.
    pub fn left(&mut self, request: u64, status: Option<u16>) {
        let mut answered = None;
        for client in &mut self.clients {
            client.waiting.retain(|one| !matches!(one.turn, Turn::Request(id) if id == request));
            if let Some(at) = client.doing.iter().position(|(id, _)| *id == request) {
                let (_, choice) = client.doing.remove(at);
                let status = status.filter(|_| !choice.is_drop());
                if let Some(last) = &mut client.last {
                    last.status = status;
                }
                answered = Some((choice, status));
            }
        }
        if let Some((choice, status)) = answered {
            self.plan.answered(&choice, status);
        }
        self.happened();
    }

    /// Where the run stands.
    pub fn next(&mut self) -> Next {
        const LONG: Duration = Duration::from_secs(1);
        let Some(run) = self.run.as_mut().filter(|run| run.stage == RunStage::Running) else {
            return Next::Wait(LONG);
        };
        if run.has_ended {
            return Next::Wait(LONG);
        }
        let silent = run.last_event.elapsed();
        let expected: Vec<_> =
            self.clients.iter().filter(|client| client.stance == Stance::Expected).collect();
        if let Some(first) = expected.first() {
            let begun = expected.len() < self.clients.len();
            if begun && silent >= START {
                run.ends(
                    RunStage::Stuck,
                    format!("{} has not begun: say so by POST .../clients/{0}", first.name),
                );
                return Next::Ended;
            }
            return Next::Wait(LONG);
        }
        if self.clients.iter().all(|client| client.stance == Stance::Finished) {
            run.ends(RunStage::Over, "");
            if let Err(Halt::Mismatch(why)) = self.plan.check_digits() {
                run.ends(RunStage::Mismatch, why);
            }
            return Next::Ended;
        }
        if self.clients.iter().any(|client| !client.doing.is_empty()) {
            return Next::Wait(LONG);
        }
        let is_left =
            |client: &&LiveClient| client.stance == Stance::Started && !client.is_at_gate();
        let moving: Vec<_> = self.clients.iter().filter(is_left).collect();
        if moving.is_empty() {
            return Next::Choose(self.ready());
        }
        let here: Vec<_> = moving
            .iter()
            .filter(|client| client.process.is_here())
            .map(|client| client.process.clone())
            .collect();
        let all_here = here.len() == moving.len();
        if !all_here && silent < self.settle {
            return Next::Wait(self.settle.saturating_sub(silent));
        }
        // What a client does after a pause of its own is no request at once with those that wait.
        let may_sleep = silent >= STUCK_ASLEEP || moving.iter().all(|it| !it.waiting.is_empty());
        match run.seen.filter(|(epoch, _)| *epoch == run.epoch) {
            _ if here.is_empty() => self.blocked(all_here),
            Some((_, Seen::Quiet | Seen::Limited)) => self.blocked(all_here),
            Some((_, Seen::Sleeping)) if may_sleep => self.blocked(all_here),
            _ => {
                let since = run.looked.unwrap_or(run.last_event).elapsed();
                match run.pause.checked_sub(since) {
                    Some(left) if !left.is_zero() => Next::Wait(left),
                    _ => Next::Look(here),
                }
            }
        }
    }

    /// The clients that do not wait for their turn are blocked.
    fn blocked(&mut self, all_here: bool) -> Next {
        self.is_weak |= !all_here;
        for client in &mut self.clients {
            client.is_blocked = client.stance == Stance::Started && client.waiting.is_empty();
        }
        let ready = self.ready();
        let Some(run) = &mut self.run else { return Next::Ended };
        let blocked = self.clients.iter().filter(|client| client.is_blocked);
        let blocked: Vec<_> = blocked.map(LiveClient::words).collect();
        run.blocked |= !blocked.is_empty();
        if !ready.is_empty() {
            return Next::Choose(ready);
        }
        let is_quiet = all_here && run.seen == Some((run.epoch, Seen::Quiet));
        let patience = if is_quiet { STUCK } else { STUCK_ASLEEP };
        let silent = run.last_event.elapsed();
        if all_here && !is_quiet {
            for client in self.clients.iter_mut().filter(|client| client.is_blocked) {
                client.sleeps.get_or_insert(run.last_event);
            }
        }
        if silent < patience {
            // Somebody may wake up by himself.
            run.seen = None;
            run.looked = Some(Instant::now());
            return Next::Wait(run.pause.min(patience.saturating_sub(silent)));
        }
        run.ends(
            RunStage::Stuck,
            format!(
                "all clients are blocked, and none waits for its turn: {}; look for locks that \
                 they take in different orders",
                blocked.join(", ")
            ),
        );
        Next::Ended
    }

    /// What the clients are ready for.
    fn ready(&self) -> Vec<(Choice, Step)> {
        self.clients.iter().flat_map(LiveClient::choices).collect()
    }

    /// Clients were looked at when the run was at `epoch`.
    pub fn saw(&mut self, epoch: u64, seen: Seen) {
        let Some(run) = &mut self.run else { return };
        if run.epoch != epoch {
            return;
        }
        run.seen = Some((epoch, seen));
        (run.looked, run.pause) = (Some(Instant::now()), (run.pause * 2).min(LOOK.1));
        let since = run.last_event;
        for client in &mut self.clients {
            let may = client.stance == Stance::Started && client.waiting.is_empty();
            if may && seen == Seen::Sleeping {
                client.sleeps.get_or_insert(since);
            }
        }
    }

    pub fn epoch(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.epoch)
    }

    /// Chooses the next step. Returns the choice, with what waits for it.
    pub fn choose(&mut self, ready: Vec<(Choice, Step)>) -> Option<(Choice, Option<Turn>)> {
        let choice = match self.plan.choose(ready) {
            Ok(choice) => choice,
            Err(halt) => {
                let run = self.run.as_mut()?;
                match halt {
                    Halt::Mismatch(why) => run.ends(RunStage::Mismatch, why),
                    Halt::Livelock => run.ends(
                        RunStage::Livelock,
                        format!(
                            "the run has {} steps, which is max_steps: a client asks for ever, or \
                             the test needs more of them",
                            self.plan.order.len()
                        ),
                    ),
                }
                return None;
            }
        };
        let done = self.plan.order.last().cloned();
        let turn = choice.client().cloned().and_then(|name| {
            let client = self.client(&name)?;
            let nth = match &choice {
                Choice::Do(_, nth) | Choice::Drop(_, nth) => *nth as usize,
                _ => 1,
            };
            let waiting = client.waiting.remove(nth - 1);
            if let Turn::Request(id) = waiting.turn {
                client.doing.push((id, choice.clone()));
            }
            client.last = done;
            Some(waiting.turn)
        });
        self.happened();
        Some((choice, turn))
    }

    /// Takes all that waits, to be ended.
    pub fn take_waiting(&mut self) -> Vec<Turn> {
        let waiting = self.clients.iter_mut().flat_map(|client| client.waiting.drain(..));
        waiting.map(|one| one.turn).collect()
    }

    /// Whether requests of its clients are being carried out.
    pub fn is_at_work(&self) -> bool {
        self.clients.iter().any(|client| !client.doing.is_empty())
    }

    /// Why the search is not complete: a sentence each.
    pub fn incomplete(&self) -> Vec<String> {
        let mut why = self.plan.incomplete();
        if self.is_weak {
            why.push(
                "clients that the server cannot look at were taken for blocked after a silence: \
                 run them on this machine, and tell their pid"
                    .to_owned(),
            );
        }
        if self.strangers > 0 {
            why.push(format!(
                "{} requests during the runs were of no client of the exploration: give each \
                 client its own connection string",
                self.strangers
            ));
        }
        why
    }
}

impl LiveClient {
    fn words(&self) -> String {
        match &self.last {
            Some(last) => format!("{} after {}", self.name, last.step.label()),
            None => format!("{} before its first request", self.name),
        }
    }
}

/// The footprint of a client's beginning: the order of beginnings matters to programs that share
/// locks.
pub fn start_footprint() -> Footprint {
    Footprint::of([], [Resource::new(["start"])])
}
