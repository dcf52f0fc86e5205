//! Requests about explorations: a test is run under every order of its clients' requests that
//! matters.
//!
//! Decides the bounds of an exploration, and that the keys of its clients end with it. What is run
//! in which order is decided in [`crate::bench::explore`], how it is written as JSON in [`calls`].

mod calls;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use calls::*;
use hyper::StatusCode;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::address::ObjectAddress;
use super::body::{AdminResponse, json as json_answer};
use super::call::ApiCall;
use super::calls::{Api, WAIT_MAX};
use super::failure::{ApiFailure, RefusalKind};
use super::routes::{EndExploration, GetExploration, GetExplorations};
use super::session::Session;
use crate::bench::explore::{
    BadToken, Choice, Done, Failure, Footprint, LiveClient, Patience, PlanOptions, Resource,
    RunStage, Shown, StageError, Stance, Step, Token, Watched,
};
use crate::bench::report::{Finding, Level};
use crate::file::rules::footprint::file;
use crate::http::auth::{NamedClients, is_client_name};
use crate::rules::service::ServiceKind;
use crate::table::rules::{EntityKey, footprint as tables};

/// The most clients of an exploration.
const CLIENTS_MAX: usize = 8;
/// The most runs of an exploration, and the most steps of a run.
const RUNS_MAX: u32 = 100_000;
const STEPS_MAX: u32 = 10_000;
/// The most times that the clock may be advanced in a run, and how far.
const ADVANCES_MAX: usize = 8;
const ADVANCE_MS_MAX: u64 = 366 * 24 * 3_600_000;
/// The longest that an exploration waits for its owner.
const IDLE_MAX: Duration = Duration::from_hours(1);
/// The longest kind of a failure, in bytes.
const SIGNATURE_MAX: usize = 1_024;

impl From<StageError> for ApiFailure {
    fn from(error: StageError) -> Self {
        let message = error.to_string();
        match error {
            StageError::Taken(_) => Self::rule(RefusalKind::Exists, message),
            StageError::Unknown(_) | StageError::NoClient(..) => Self::not_found(message),
            StageError::Ended(_) | StageError::NoRun(_) | StageError::NotStarted(_) => {
                Self::bad(message)
            }
            StageError::AtWork | StageError::NoThread(_) => Self::busy(message),
        }
    }
}

impl From<BadToken> for ApiFailure {
    fn from(error: BadToken) -> Self {
        Self::bad(error.to_string())
    }
}

impl CreateExploration {
    fn check(&self) -> Result<(), ApiFailure> {
        let count = self.clients.len();
        if !(1..=CLIENTS_MAX).contains(&count) {
            let why = format!("an exploration has 1 to {CLIENTS_MAX} clients, not {count}");
            return Err(ApiFailure::bad(why));
        }
        for (at, name) in self.clients.iter().enumerate() {
            if !is_client_name(name) || name.contains('.') {
                return Err(ApiFailure::bad(format!(
                    "'{}' is no client of an exploration: its name has 1 to 64 letters, digits, \
                     hyphens and underscores",
                    name.chars().take(64).collect::<String>()
                )));
            }
            let is_counted = |other: &String| {
                let count = other.strip_prefix(name.as_str());
                count.is_some_and(|count| count.bytes().all(|digit| digit.is_ascii_digit()))
            };
            let others = self.clients.iter().enumerate().filter(|(other, _)| *other != at);
            if let Some((_, other)) = others.into_iter().find(|(_, other)| is_counted(other)) {
                return Err(ApiFailure::bad(format!(
                    "{name} and {other} cannot be told apart in a token: {name} twice is {name}2"
                )));
            }
        }
        let in_bounds = [
            ("budget", self.budget, 1, RUNS_MAX),
            ("drops", self.drops, 0, STEPS_MAX),
            ("max_steps", self.max_steps, 1, STEPS_MAX),
        ];
        for (name, value, least, most) in in_bounds {
            if value.is_some_and(|value| !(least..=most).contains(&value)) {
                return Err(ApiFailure::bad(format!(
                    "'{name}' is a number from {least} to {most}"
                )));
            }
        }
        let mut advances = self.advance_ms.clone();
        advances.sort_unstable();
        advances.dedup();
        let fit = advances.iter().all(|ms| (1..=ADVANCE_MS_MAX).contains(ms));
        if !fit || advances.len() != self.advance_ms.len() || advances.len() > ADVANCES_MAX {
            return Err(ApiFailure::bad(format!(
                "'advance_ms' has at most {ADVANCES_MAX} different times from 1 to {ADVANCE_MS_MAX}"
            )));
        }
        Ok(())
    }

    fn patience(&self) -> Result<Patience, ApiFailure> {
        let idle = Duration::from_millis(self.idle_ms.unwrap_or(60_000));
        let settle = Duration::from_millis(self.settle_ms.unwrap_or(250));
        if idle > IDLE_MAX || idle.is_zero() || settle > idle {
            return Err(ApiFailure::bad(format!(
                "'idle_ms' is a time from 1 to {} and 'settle_ms' no longer",
                IDLE_MAX.as_millis()
            )));
        }
        let owner = Watched { pid: self.owner, threads: Vec::new() };
        // The number says nothing of a process that is elsewhere.
        let owner = Some(owner).filter(Watched::is_here);
        Ok(Patience { idle, settle, state: self.state.clone(), owner })
    }

    fn options(&self) -> Result<PlanOptions, ApiFailure> {
        let clients: Vec<Arc<str>> = self.clients.iter().map(|name| name.as_str().into()).collect();
        let replay = self.replay.as_deref();
        Ok(PlanOptions {
            budget: self.budget.unwrap_or(200).into(),
            drops: self.drops.unwrap_or_default() as usize,
            advance: self.advance_ms.clone(),
            max_steps: self.max_steps.unwrap_or(200) as usize,
            seed: self.seed.unwrap_or(1),
            replay: replay.map(|token| Token::read(token, &clients)).transpose()?,
            clients,
        })
    }
}

/// Removes clients of an account when their exploration ends.
fn remove(clients: &NamedClients, names: &[String]) {
    for name in names {
        // Its owner may have removed it.
        drop(clients.remove(name));
    }
}

impl Session {
    pub fn create_exploration(
        &self,
        wanted: CreateExploration,
    ) -> Result<ExplorationCreated, ApiFailure> {
        wanted.check()?;
        let (options, patience) = (wanted.options()?, wanted.patience()?);
        let controls = self.serving.controls();
        if let Some(id) =
            controls.stage.shown(|shown| (!shown.ended).then_some(shown.live.id)).flatten()
        {
            return Err(StageError::Taken(id).into());
        }
        let named = Arc::clone(&self.reached()?.clients);
        let mut clients = BTreeMap::new();
        let mut added = Vec::new();
        for name in wanted.clients {
            match self.add_client(super::AddClient { name: name.clone() }) {
                Ok(client) => {
                    clients.insert(name.clone(), client.connection_string);
                    added.push(name);
                }
                Err(failure) => {
                    remove(&named, &added);
                    return Err(failure);
                }
            }
        }
        let (of, names) = (Arc::clone(&named), added.clone());
        let begun = controls.explore(options, patience, Box::new(move || remove(&of, &names)));
        let exploration = begun.inspect_err(|_| remove(&named, &added))?;
        self.tell("exploration", Some(exploration), "begun");
        Ok(ExplorationCreated { exploration, clients })
    }

    /// Ends the run before, puts the state in place, and begins the next run.
    pub fn begin_run(&self, BeginRun { id }: BeginRun) -> Result<RunBegun, ApiFailure> {
        let controls = self.serving.controls();
        let begun = controls.begin_run(id, |state| match state {
            Some(name) => self.restore_state(super::RestoreState { name }).map(drop),
            None => Ok(()),
        })?;
        let Some((run, phase)) = begun else {
            return Ok(RunBegun { run: None, phase: None, done: true });
        };
        self.tell_barrier("mark", mark_of(id, run));
        Ok(RunBegun { run: Some(run), phase: Some(phase.to_owned()), done: false })
    }

    pub fn end_run(&self, wanted: EndRun) -> Result<RunEnded, ApiFailure> {
        let EndRun { id, run, failed, signature } = wanted;
        let mut signature = signature.unwrap_or_else(|| "failed".to_owned());
        signature.truncate(signature.floor_char_boundary(SIGNATURE_MAX));
        let controls = self.serving.controls();
        let goes_on = controls.end_run((id, run), failed.then_some(signature))?;
        if failed {
            let mark = mark_of(id, run);
            let report = controls.report.with(|engine| engine.report(Some(&mark), Level::Info));
            let findings = report.map(|report| report.findings).unwrap_or_default();
            controls.stage.of(id, |shown| {
                // Of the last run that failed: the one that the order is of.
                shown.report = findings;
                Ok(())
            })?;
        }
        Ok(RunEnded { next: if goes_on { "run" } else { "done" }.to_owned() })
    }

    pub fn explorations(&self, _: GetExplorations) -> Result<ExplorationList, ApiFailure> {
        let shown = self.serving.controls().stage.shown(exploration);
        Ok(ExplorationList { explorations: shown.into_iter().collect() })
    }

    pub fn exploration(&self, wanted: GetExploration) -> Result<Exploration, ApiFailure> {
        let GetExploration { id } = wanted;
        Ok(self.serving.controls().stage.of(id, |shown| Ok(exploration(shown)))?)
    }

    /// Ends it. One that has ended already stays so.
    pub fn end_exploration(&self, wanted: EndExploration) -> Result<Exploration, ApiFailure> {
        let EndExploration { id } = wanted;
        match self.serving.controls().end_exploration(id) {
            Ok(()) => self.tell("exploration", Some(id), "ended"),
            Err(StageError::Ended(_)) => {}
            Err(error) => return Err(error.into()),
        }
        self.exploration(GetExploration { id })
    }
}

/// The mark of a run in the journal.
fn mark_of(id: u64, run: u64) -> String {
    format!("exploration {id} run {run}")
}

fn exploration(shown: &Shown) -> Exploration {
    let live = &shown.live;
    let plan = &live.plan;
    let incomplete = live.incomplete();
    Exploration {
        exploration: live.id,
        clients: live.clients.iter().map(|client| client.name.to_string()).collect(),
        done: plan.is_done(),
        ended: shown.ended,
        runs: plan.runs,
        pruned: plan.search.pruned,
        complete: incomplete.is_empty(),
        incomplete,
        divergences: plan.search.divergences,
        blocked: plan.blocked,
        stragglers: live.stragglers,
        notes: live.all_notes(),
        failure: plan.failure.as_ref().map(|failure| failure_of(failure, &shown.report)),
    }
}

fn failure_of(failure: &Failure, report: &[Finding]) -> ExplorationFailure {
    ExplorationFailure {
        token: failure.token.to_string(),
        order: failure.order.iter().map(explored).collect(),
        signature: failure.signature.clone(),
        run: failure.run,
        confirmed: failure.confirmed,
        report: report.to_vec(),
    }
}

fn explored(done: &Done) -> ExploredStep {
    step_of(&done.step, done.choice.to_string(), done.choice.client().map(|it| &**it), done.status)
}

fn step_of(step: &Step, choice: String, client: Option<&str>, status: Option<u16>) -> ExploredStep {
    ExploredStep {
        client: client.unwrap_or("clock").to_owned(),
        operation: step.operation.clone(),
        object: step.object.clone(),
        choice,
        status,
    }
}

fn run_client(client: &LiveClient) -> RunClient {
    let state = match client.stance {
        Stance::Expected => "expected",
        Stance::Finished => "finished",
        Stance::Started if !client.waiting.is_empty() => "waiting",
        Stance::Started if client.is_blocked => "blocked",
        Stance::Started => "running",
    };
    let waits = client.waiting.first().map(|waiting| {
        let choice = Choice::Do(Arc::clone(&client.name), 1).to_string();
        step_of(&waiting.step, choice, Some(&client.name), None)
    });
    RunClient {
        client: client.name.to_string(),
        state: state.to_owned(),
        step: waits.or_else(|| client.last.as_ref().map(explored)),
    }
}

fn run_state(shown: &Shown, number: u64) -> Result<RunState, StageError> {
    let live = &shown.live;
    let run = live.run.as_ref().filter(|run| run.number == number);
    let run = run.ok_or(StageError::NoRun(number))?;
    let state = match run.stage {
        RunStage::Running => "running",
        RunStage::Over => "over",
        RunStage::Stuck => "stuck",
        RunStage::Livelock => "livelock",
        RunStage::Mismatch => "mismatch",
    };
    Ok(RunState {
        run: number,
        state: state.to_owned(),
        notes: run.notes.clone(),
        clients: live.clients.iter().map(run_client).collect(),
        order: live.plan.order.iter().map(explored).collect(),
    })
}

/// The resources of an object that a step names.
fn resources(account: &str, text: &str) -> Result<Vec<Resource>, ApiFailure> {
    let root = |kind: ServiceKind| Resource::new([format!("{kind}:{account}")]);
    let below = |kind, container: String| root(kind).below(container.to_ascii_lowercase());
    let object = ObjectAddress::read(text).ok_or_else(|| {
        ApiFailure::bad(format!("'{text}' is no object: expected one as in blob:box/a"))
    })?;
    Ok(match object {
        ObjectAddress::Service(kind) => vec![root(kind)],
        ObjectAddress::File { share, path } => vec![file(account, &share, &path)],
        ObjectAddress::Container(name) => vec![below(ServiceKind::Blob, name)],
        ObjectAddress::Blob { container, name } => {
            vec![below(ServiceKind::Blob, container).below("blob").below(name)]
        }
        ObjectAddress::Queue(queue) => vec![below(ServiceKind::Queue, queue)],
        ObjectAddress::Message { queue, id } => {
            vec![below(ServiceKind::Queue, queue).below("message").below(id)]
        }
        ObjectAddress::Table(name) => vec![tables::table(account, &name)],
        ObjectAddress::Partition { table, partition } => {
            vec![tables::partition(account, &table, &partition)]
        }
        ObjectAddress::Entity { table, partition, row } => {
            vec![tables::entity(account, &table, EntityKey::new(partition, row))]
        }
    })
}

impl Api {
    pub(super) async fn tell_client(
        self: Arc<Self>,
        call: ApiCall,
        wanted: TellClient,
    ) -> Result<AdminResponse, ApiFailure> {
        let TellClient { id, run, name, state, pid, threads } = wanted;
        let controls = self.serving.controls();
        match &*state {
            "started" => {
                let process = Watched { pid, threads };
                let begins = controls.client_starts((id, run, &name), process)?;
                self.turn(&call, begins).await?;
            }
            "finished" => controls.client_finished((id, run, &name))?,
            other => {
                let why = format!("there is no state '{other}', only started and finished");
                return Err(ApiFailure::bad(why));
            }
        }
        Ok(json_answer(StatusCode::OK, &json!(ClientTold { client: name, state })))
    }

    /// Waits for the turn of a client: the number of its step.
    async fn turn(
        &self,
        call: &ApiCall,
        mut chosen: oneshot::Receiver<u64>,
    ) -> Result<u64, ApiFailure> {
        if let Ok(step) = chosen.try_recv() {
            return Ok(step);
        }
        let _place = self.wait(call.peer, WAIT_MAX)?;
        match timeout(WAIT_MAX, chosen).await {
            Ok(Ok(step)) => Ok(step),
            Ok(Err(_)) => Err(ApiFailure::timeout("the run has ended: the client may end too")),
            Err(_) => Err(ApiFailure::timeout("the step was not chosen for 10 minutes")),
        }
    }

    pub(super) async fn take_step(
        self: Arc<Self>,
        call: ApiCall,
        wanted: TakeStep,
    ) -> Result<AdminResponse, ApiFailure> {
        let TakeStep { id, run, client, name, objects, writes } = wanted;
        let session = self.session(&call)?;
        let account = session.account.name();
        let named = objects.iter().map(|object| resources(account, object));
        let mut all = named.collect::<Result<Vec<_>, _>>()?.concat();
        if objects.is_empty() {
            all.push(Resource::new(Vec::<String>::new()));
        }
        let footprint = if writes { Footprint::of([], all) } else { Footprint::of(all, []) };
        let object = objects.join(" ");
        let step = Step { operation: name, object, fingerprint: 0, footprint, can_drop: false };
        let chosen = self.serving.controls().client_steps((id, run, &client), step)?;
        let step = self.turn(&call, chosen).await?;
        Ok(json_answer(StatusCode::OK, &json!(StepTaken { step })))
    }

    /// A call of a client of an exploration that opens a file is one of its steps.
    pub(super) async fn turn_to_hold(
        &self,
        call: &ApiCall,
        account: &str,
        file: &str,
    ) -> Result<(), ApiFailure> {
        let controls = self.serving.controls();
        let Some(name) = call.client.as_deref().filter(|_| controls.stage.is_set()) else {
            return Ok(());
        };
        let at = controls.stage.shown(|shown| {
            let client = shown.live.clients.iter().find(|client| *client.name == *name)?;
            let run = shown.live.run.as_ref().filter(|_| client.stance == Stance::Started)?;
            Some((shown.live.id, run.number))
        });
        let Some((id, run)) = at.flatten() else { return Ok(()) };
        let footprint = Footprint::of([], resources(account, file).unwrap_or_default());
        let (operation, object) = ("Hold".to_owned(), file.to_owned());
        let step = Step { operation, object, fingerprint: 0, footprint, can_drop: false };
        let chosen = controls.client_steps((id, run, name), step)?;
        self.turn(call, chosen).await.map(drop)
    }

    pub(super) async fn watch_run(
        self: Arc<Self>,
        call: ApiCall,
        GetRun { id, run, wait_ms }: GetRun,
    ) -> Result<AdminResponse, ApiFailure> {
        let patience = Duration::from_millis(wait_ms.unwrap_or_default()).min(WAIT_MAX);
        let controls = self.serving.controls();
        if !patience.is_zero() {
            let _place = self.wait(call.peer, patience)?;
            controls.watch_run(id, run, patience).await?;
        }
        let state = controls.stage.of(id, |shown| run_state(shown, run))?;
        Ok(json_answer(StatusCode::OK, &json!(state)))
    }
}
