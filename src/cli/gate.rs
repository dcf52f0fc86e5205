//! `latchfs gate`: points where requests stop until a test releases them.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::EXIT_DIFFERENT;
use super::locate::{Socket, ask, unexpected};
use super::matching::{Matching, show_added, show_removed, words_of};
use super::out::{self, Output};
use super::time::duration;
use crate::api::control::controls::{GateEntry, GateRequest};
use crate::api::control::{ControlAnswer, ControlClient, ControlRequest};

/// How long one question waits; the next follows.
const WAIT_MS: u64 = 1_000;

const EXAMPLE: &str = "\
Example:
  latchfs gate add 'Put Blob' 'docs/*'
  latchfs gate wait 1           # until a request has stopped there
  latchfs gate release 1";

/// Stop requests at a chosen point, and release them
///
/// Lets a test choose the order of competing requests. A waiting request holds no lock, and is
/// released after --limit.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct GateCommand {
    #[command(subcommand)]
    command: GateSubcommand,
}

#[derive(Debug, Subcommand)]
enum GateSubcommand {
    Add(AddGate),
    List(ListGates),
    Wait(Wait),
    Release(Release),
    Remove(RemoveGate),
}

// What the values mean stands in the help of the option, which would be long otherwise.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum At {
    Received,
    Checked,
    Committed,
}

/// Add a gate; prints its number
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs gate add 'Put Blob' docs/a.txt --at committed")]
struct AddGate {
    #[command(flatten)]
    matching: Matching,

    /// Where requests stop: before any check; after conditions and leases were checked and before
    /// any change; or after the commit and before the answer
    #[arg(long, value_enum, default_value = "received", env = "LATCHFS_AT")]
    at: At,

    /// Stop only the next N requests [default: all]
    #[arg(long, value_name = "N", env = "LATCHFS_TIMES")]
    times: Option<u32>,

    /// How long a request waits at most
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    #[arg(env = "LATCHFS_LIMIT")]
    limit: Duration,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Socket,
}

/// List the gates, and the requests that wait at them
///
/// A table on a terminal, otherwise a line for each with tabs between: gate, nothing, where, which
/// operations, which paths, how many have stopped; then, for each request that waits there: gate,
/// request, "waits", operation, path, client.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs gate list --json")]
struct ListGates {
    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Socket,
}

/// Wait until requests have stopped at a gate
///
/// Exits 1 if they have not within the time.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs gate wait 1 --count 2")]
struct Wait {
    /// The gate
    gate: u64,

    /// How many requests
    #[arg(long, value_name = "N", default_value_t = 1, env = "LATCHFS_COUNT")]
    count: usize,

    /// For how long
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    #[arg(env = "LATCHFS_WITHIN")]
    within: Duration,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Socket,
}

/// Let requests go; prints how many went
///
/// Exits 1 if none waited.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs gate release 1 --count 1")]
struct Release {
    /// The gate [default: all gates]
    gate: Option<u64>,

    /// This request alone, as `latchfs gate list` numbers it
    #[arg(long, value_name = "N", env = "LATCHFS_REQUEST")]
    request: Option<u64>,

    /// Release only the first N [default: all]
    #[arg(long, value_name = "N", env = "LATCHFS_COUNT")]
    count: Option<usize>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Socket,
}

/// Remove a gate; requests that wait there go on
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs gate remove --all")]
struct RemoveGate {
    /// The gate
    gate: Option<u64>,

    /// All gates
    #[arg(long, conflicts_with = "gate")]
    all: bool,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Socket,
}

impl GateCommand {
    /// Does it.
    pub fn run(&self) -> Result<ExitCode> {
        match &self.command {
            GateSubcommand::Add(add) => add.run(),
            GateSubcommand::List(list) => list.run(),
            GateSubcommand::Wait(wait) => wait.run(),
            GateSubcommand::Release(release) => release.run(),
            GateSubcommand::Remove(remove) => remove.run(),
        }
    }
}

impl AddGate {
    fn run(&self) -> Result<ExitCode> {
        let at = match self.at {
            At::Received => "received",
            At::Checked => "checked",
            At::Committed => "committed",
        };
        let request = GateRequest::Add {
            requests: self.matching.requests()?,
            at: at.to_owned(),
            times: self.times,
            limit_ms: Some(u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX)),
        };
        let answer = ask(&self.server.find()?, &ControlRequest::Gate(request))?;
        show_added(&answer, "gate", self.output)
    }
}

impl ListGates {
    fn run(&self) -> Result<ExitCode> {
        let gates = match ask(&self.server.find()?, &ControlRequest::Gate(GateRequest::List {}))? {
            ControlAnswer::Gates { gates } => gates,
            other => return Err(unexpected(&other)),
        };
        let rows: Vec<_> = gates.iter().flat_map(rows).collect();
        if self.output.json {
            self.output.show(&gates, String::new)?;
        } else {
            let headings = ["GATE", "REQUEST", "AT", "OPERATION", "PATH", "STOPPED OR CLIENT"];
            self.output.show_rows(&rows, headings, Clone::clone)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A gate, and below it the requests that wait.
fn rows(gate: &GateEntry) -> Vec<[String; 6]> {
    let (operation, path) = words_of(&gate.requests);
    let stopped = format!("{} stopped", gate.stopped);
    let mut rows =
        vec![[gate.id.to_string(), String::new(), gate.at.clone(), operation, path, stopped]];
    rows.extend(gate.waiting.iter().map(|one| {
        let (id, request) = (gate.id.to_string(), one.request.to_string());
        [
            id,
            request,
            "waits".to_owned(),
            one.operation.clone(),
            one.path.clone(),
            one.client.clone(),
        ]
    }));
    rows
}

impl Wait {
    fn run(&self) -> Result<ExitCode> {
        let mut server = ControlClient::connect(&self.server.find()?)?;
        let began = Instant::now();
        loop {
            let left = self.within.saturating_sub(began.elapsed());
            let wait_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).min(WAIT_MS);
            let wait = GateRequest::Wait { id: self.gate, count: self.count, wait_ms };
            let waiting = match super::locate::answered(server.ask(&ControlRequest::Gate(wait))?)? {
                ControlAnswer::Counted { count } => count,
                other => return Err(unexpected(&other)),
            };
            if waiting >= self.count {
                self.output.show(&json!({ "waiting": waiting }), String::new)?;
                return Ok(ExitCode::SUCCESS);
            }
            if left.is_zero() {
                let text =
                    format!("{waiting} of {} requests wait at gate {}", self.count, self.gate);
                out::complain_of(&text, "timeout");
                return Ok(ExitCode::from(EXIT_DIFFERENT));
            }
        }
    }
}

impl Release {
    fn run(&self) -> Result<ExitCode> {
        let (id, request, count) = (self.gate, self.request, self.count);
        let release = GateRequest::Release { id, request, count };
        let count = match ask(&self.server.find()?, &ControlRequest::Gate(release))? {
            ControlAnswer::Counted { count } => count,
            other => return Err(unexpected(&other)),
        };
        self.output.show(&json!({ "released": count }), || format!("{count}\n"))?;
        Ok(if count > 0 { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIFFERENT) })
    }
}

impl RemoveGate {
    fn run(&self) -> Result<ExitCode> {
        if self.gate.is_none() && !self.all {
            bail!("name a gate, or --all");
        }
        let answer = ask(
            &self.server.find()?,
            &ControlRequest::Gate(GateRequest::Remove { id: self.gate }),
        )?;
        show_removed(&answer, self.output)
    }
}
