//! `latchfs explore`: programs of any language in every order of their requests that matters.
//!
//! Decides what one run is, and how its verdict is told; [`processes`] starts the commands, and
//! which order comes next is decided in the server.

mod processes;

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;

pub use processes::ExploreClient;
use processes::{Running, check_not_stopped, run_alone};

use super::EXIT_DIFFERENT;
use super::client::of_server;
use super::locate::ServerAndOutput;
use super::out::{Paint, printable, usage};
use super::progress::Moving;
use super::table;
use super::time::duration;
use crate::api::{
    ApiClient, BeginRun, CreateExploration, DeleteState, EndExploration, EndRun, Exploration,
    ExplorationCreated, ExploredStep, GetExploration, GetRun, RestoreState, RunState, SaveState,
};

/// What the server has before the command, and again after it.
const BEFORE: &str = "latchfs-explore-before";
/// What each run begins with.
const BASE: &str = "latchfs-explore";
/// How long one look at a run waits for its end.
const LOOK_MS: u64 = 200;

const EXAMPLE: &str = "\
Example:
  latchfs explore --setup 'python setup.py' --check 'python check.py' \\
    --client A='python count_up.py' --client B='python count_up.py'";

/// Run commands in every order of their requests that matters, and find one that fails
///
/// Each client is a command of the shell that finds its connection string in
/// `AZURE_STORAGE_CONNECTION_STRING`. The server lets one request of one client through at a time,
/// in another order in each run. A run fails if a client or the check exits with another status
/// than 0. The data of the server is as before at the end. Exits 0 if no order failed, 1 if one
/// did.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Explore {
    /// A client: its name and its command; repeat for each
    #[arg(long = "client", value_name = "NAME=CMD", required = true, env = "LATCHFS_CLIENT")]
    clients: Vec<String>,

    /// Run once first: its data is what each run begins with
    #[arg(long, value_name = "CMD", env = "LATCHFS_SETUP")]
    setup: Option<String>,

    /// Run after the clients: says whether the outcome is right
    #[arg(long, value_name = "CMD", env = "LATCHFS_CHECK")]
    check: String,

    /// Lose up to N answers in a run
    #[arg(long, value_name = "N", default_value_t = 0, env = "LATCHFS_DROPS")]
    drops: u32,

    /// Turn the clock by this time in a run, once; repeat for further times
    #[arg(long, value_name = "TIME", value_parser = duration, env = "LATCHFS_ADVANCE")]
    advance: Vec<Duration>,

    /// The most runs
    #[arg(long, value_name = "N", default_value_t = 200, env = "LATCHFS_BUDGET")]
    budget: u32,

    /// Run this order alone: the token of a failure
    #[arg(long, value_name = "TOKEN", env = "LATCHFS_SCHEDULE")]
    replay: Option<String>,

    /// How long the commands of one run may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    #[arg(env = "LATCHFS_WITHIN")]
    within: Duration,

    #[command(flatten)]
    common: ServerAndOutput,
}

/// A client as the command line names it.
struct Client<'a> {
    name: &'a str,
    command: &'a str,
}

/// A search at the server. Ends with its keys when dropped.
struct Search<'a> {
    server: &'a ApiClient,
    control: &'a Path,
    /// The connection string of the check.
    connection: String,
    created: ExplorationCreated,
}

impl Drop for Search<'_> {
    fn drop(&mut self) {
        // A server that has stopped has ended it too.
        let _ = self.server.ask(&EndExploration { id: self.created.exploration });
    }
}

/// How a run failed, and what its commands printed.
struct Failure {
    why: String,
    output: String,
}

/// Saved data of the server, restored and deleted when dropped.
struct Before<'a>(&'a ApiClient);

impl Drop for Before<'_> {
    fn drop(&mut self) {
        let _ = self.0.ask(&RestoreState { name: BEFORE.to_owned() });
        for name in [BEFORE, BASE] {
            let _ = self.0.ask(&DeleteState { name: name.to_owned() });
        }
    }
}

impl Explore {
    pub fn run(&self) -> Result<ExitCode> {
        let clients = self.named()?;
        let control = self.common.server.find()?;
        let connection = of_server(&control, None)?.connection_string;
        let server = ApiClient::new(&control);
        processes::end_with_signals()?;
        server.ask(&SaveState { name: BEFORE.to_owned() })?;
        let before = Before(&server);
        if let Some(setup) = &self.setup {
            let ended = run_alone(setup, &connection, self.within)?;
            if let Some(why) = ended.failure() {
                bail!("--setup {why}: {}", ended.output.trim());
            }
        }
        server.ask(&SaveState { name: BASE.to_owned() })?;
        let created = server.ask(&self.wanted(&clients))?;
        let id = created.exploration;
        let search = Search { server: &server, control: &control, connection, created };
        let failure = self.runs(&search, &clients)?;
        // What it has found stays.
        drop(search);
        let found = server.ask(&GetExploration { id })?;
        drop(before);
        let paint = Paint::of(&io::stdout());
        self.common.output.show(&found, || words(&found, failure.as_ref(), paint))?;
        let fails = found.failure.is_some();
        Ok(if fails { ExitCode::from(EXIT_DIFFERENT) } else { ExitCode::SUCCESS })
    }

    /// The clients. Names are checked by the server.
    fn named(&self) -> Result<Vec<Client<'_>>> {
        let mut clients = Vec::new();
        for given in &self.clients {
            let Some((name, command)) = given.split_once('=') else {
                usage!("--client '{given}': expected NAME=CMD, as in A='python worker.py'");
            };
            clients.push(Client { name, command });
        }
        Ok(clients)
    }

    fn wanted(&self, clients: &[Client<'_>]) -> CreateExploration {
        let advance = self.advance.iter().map(Duration::as_millis);
        CreateExploration {
            clients: clients.iter().map(|client| client.name.to_owned()).collect(),
            state: Some(BASE.to_owned()),
            budget: Some(self.budget),
            drops: Some(self.drops),
            advance_ms: advance.map(|time| u64::try_from(time).unwrap_or(u64::MAX)).collect(),
            replay: self.replay.clone(),
            // The server ends the search by itself if this command is killed.
            idle_ms: u64::try_from(self.within.as_millis()).ok().map(|within| within + 60_000),
            owner: Some(std::process::id()),
            ..CreateExploration::default()
        }
    }

    /// All runs; how the last failing one failed.
    fn runs(&self, search: &Search<'_>, clients: &[Client<'_>]) -> Result<Option<Failure>> {
        let moving = Moving::new("exploring");
        let id = search.created.exploration;
        let mut last = None;
        loop {
            let begun = search.server.ask(&BeginRun { id })?;
            let Some(run) = begun.run.filter(|_| !begun.done) else { return Ok(last) };
            moving.say(&format!("run {run}: {}", begun.phase.as_deref().unwrap_or_default()));
            let failure = self.run_once(search, run, clients)?;
            let signature = failure.as_ref().map(|failure| failure.why.clone());
            search.server.ask(&EndRun { id, run, failed: failure.is_some(), signature })?;
            last = failure.or(last);
        }
    }

    /// A run of the clients and the check: how it fails, if it does.
    fn run_once(
        &self,
        search: &Search<'_>,
        run: u64,
        clients: &[Client<'_>],
    ) -> Result<Option<Failure>> {
        let id = search.created.exploration;
        let mut running = Vec::new();
        for Client { name, command } in clients {
            let string = search.created.clients.get(*name).map_or("", String::as_str);
            running.push((*name, Running::client(search.control, id, run, name, command, string)?));
        }
        let end = Instant::now() + self.within;
        loop {
            check_not_stopped()?;
            let look = GetRun { id, run, wait_ms: Some(LOOK_MS) };
            let RunState { state, notes, .. } = search.server.ask(&look)?;
            let notes = notes.join("; ");
            match &*state {
                // All have ended, and were told to the server.
                "over" => break,
                "running" => {}
                "mismatch" => bail!("{notes}"),
                _ => return Ok(Some(Failure { why: state, output: notes + "\n" })),
            }
            if Instant::now() > end {
                let late = running.iter().filter(|(_, client)| !client.has_ended());
                let late: Vec<_> = late.map(|(name, _)| *name).collect();
                bail!(
                    "{} did not end within {:?}: a client must end by itself, whatever the others \
                     do; --within gives it more time",
                    late.join(" and "),
                    self.within
                );
            }
        }
        let mut output = String::new();
        let mut why = None;
        for (name, client) in running {
            let ended = client.end()?;
            if ended.never_started() {
                bail!("client {name} could not start: {}", ended.output.trim());
            }
            output += &ended.output;
            why = why.or(ended.failure().map(|why| format!("client {name} {why}")));
        }
        if why.is_none() {
            let ended = run_alone(&self.check, &search.connection, self.within)?;
            output += &ended.output;
            why = ended.failure().map(|why| format!("--check {why}"));
        }
        Ok(why.map(|why| Failure { why, output }))
    }
}

/// What was found, for people.
fn words(found: &Exploration, last: Option<&Failure>, paint: Paint) -> String {
    let runs = found.runs;
    let mut text = String::new();
    if let Some(failure) = &found.failure {
        text += &order(&failure.order);
        if let Some(Failure { why, output }) = last {
            let _ = write!(text, "{}{}: ", printable(output), paint.bad("fails"));
            let _ =
                writeln!(text, "{} in this order, found in run {}", printable(why), failure.run);
        }
        let token = paint.bold(&format!("--replay '{}'", failure.token));
        let _ = writeln!(text, "To run it again, add {token} to the command.");
    } else {
        let all = if found.complete { "all that matter" } else { "not complete" };
        let _ = writeln!(text, "{} in {runs} orders, {all}", paint.good("passes"));
    }
    // A search that has found an order ends, and needs no other reason.
    let incomplete = found.incomplete.iter().filter(|_| found.failure.is_none());
    for note in incomplete.chain(&found.notes) {
        let _ = writeln!(text, "{}", printable(note));
    }
    text
}

/// The steps of an order as a table.
fn order(steps: &[ExploredStep]) -> String {
    let row = |(at, step): (usize, &ExploredStep)| {
        let status = step.status.map(|status| status.to_string()).unwrap_or_default();
        let step = step.clone();
        let number = (at + 1).to_string();
        [number, step.client, step.operation, step.object, step.choice, status]
    };
    let rows: Vec<_> = steps.iter().enumerate().map(row).collect();
    table::text(["STEP", "CLIENT", "OPERATION", "OBJECT", "CHOICE", "STATUS"], &rows)
}
