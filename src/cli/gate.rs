//! `latchfs gate`: points where requests stop until a test releases them.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::EXIT_DIFFERENT;
use super::locate::{ServerAndOutput, ask};
use super::matching::{Matching, remove, show_added, words_of};
use super::out;
use super::time::duration;
use crate::api::{
    ClientError, GateEntry, GateList, GetGates, NewGate, ReleaseGates, RemoveGate as RemoveOne,
    RemoveGates as RemoveAll, WAIT_MAX, WaitAtGate, Waiting, Went,
};

const EXAMPLE: &str = "\
Example:
  latchfs gate add 'Put Blob' 'docs/*'
  latchfs gate wait 1           # until a request has stopped there
  latchfs gate release 1";

/// Stop requests at a chosen point, and release them
///
/// Lets a test choose the order of competing requests. A waiting request holds no lock, and is
/// released after --limit.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLE)]
pub enum GateCommand {
    Add(AddGate),
    /// List the gates, and the requests that wait at them
    ///
    /// A table on a terminal, otherwise a line for each with tabs between: gate, nothing, where,
    /// which operations, which paths, how many have stopped; then, for each request that waits
    /// there: gate, request, "waits", operation, path, client.
    #[command(after_help = "Example:\n  latchfs gate list --json")]
    List(ServerAndOutput),
    Wait(Wait),
    /// Let requests go; prints how many went
    ///
    /// Exits 1 if none waited.
    #[command(after_help = "Example:\n  latchfs gate release 1 --count 1")]
    Release {
        /// The gate [default: all gates]
        gate: Option<u64>,

        /// This request alone, as `latchfs gate list` numbers it
        #[arg(long, value_name = "N", env = "LATCHFS_REQUEST")]
        request: Option<u64>,

        /// Release only the first N [default: all]
        #[arg(long, value_name = "N", env = "LATCHFS_COUNT")]
        count: Option<u64>,

        #[command(flatten)]
        common: ServerAndOutput,
    },
    /// Remove a gate; requests that wait there go on
    #[command(after_help = "Example:\n  latchfs gate remove --all")]
    Remove {
        /// The gate
        gate: Option<u64>,

        /// All gates
        #[arg(long, conflicts_with = "gate")]
        all: bool,

        #[command(flatten)]
        common: ServerAndOutput,
    },
}

/// Add a gate; prints its number
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs gate add 'Put Blob' docs/a.txt --at committed")]
pub struct AddGate {
    #[command(flatten)]
    matching: Matching,

    /// Where requests stop: received, before any check; committed, after the commit and before the
    /// answer
    #[arg(long, value_name = "POINT", default_value = "received", env = "LATCHFS_AT")]
    at: String,

    /// Stop only the next N requests [default: all]
    #[arg(long, value_name = "N", env = "LATCHFS_TIMES")]
    times: Option<u32>,

    /// How long a request waits at most
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    #[arg(env = "LATCHFS_LIMIT")]
    limit: Duration,

    #[command(flatten)]
    common: ServerAndOutput,
}

/// Wait until requests have stopped at a gate
///
/// Exits 1 if they have not within the time.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs gate wait 1 --count 2")]
pub struct Wait {
    /// The gate
    gate: u64,

    /// How many requests
    #[arg(long, value_name = "N", default_value_t = 1, env = "LATCHFS_COUNT")]
    count: u32,

    /// For how long
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    #[arg(env = "LATCHFS_WITHIN")]
    within: Duration,

    #[command(flatten)]
    common: ServerAndOutput,
}

impl GateCommand {
    pub fn run(&self) -> Result<ExitCode> {
        match self {
            GateCommand::Add(add) => add.run(),
            GateCommand::List(common) => list(common),
            GateCommand::Wait(wait) => wait.run(),
            GateCommand::Release { gate, request, count, common } => {
                let (gate, request, count) = (*gate, *request, *count);
                let release = ReleaseGates { gate, request, count };
                let Went { released: count } = ask(&common.server.find()?, &release)?;
                common.output.show(&json!({ "released": count }), || format!("{count}\n"))?;
                Ok(if count > 0 { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIFFERENT) })
            }
            GateCommand::Remove { gate, all, common } => {
                remove("gate", gate.map(|id| RemoveOne { id }), all.then_some(RemoveAll {}), common)
            }
        }
    }
}

impl AddGate {
    fn run(&self) -> Result<ExitCode> {
        let gate = NewGate {
            at: Some(self.at.clone()),
            times: self.times,
            limit_ms: Some(u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX)),
            ..NewGate::new(self.matching.requests()?)
        };
        let added = ask(&self.common.server.find()?, &gate)?;
        show_added(added.gate, "gate", self.common.output)
    }
}

fn list(common: &ServerAndOutput) -> Result<ExitCode> {
    let GateList { gates } = ask(&common.server.find()?, &GetGates {})?;
    let rows: Vec<_> = gates.iter().flat_map(rows).collect();
    if common.output.json {
        common.output.show(&gates, String::new)
    } else {
        let headings = ["GATE", "REQUEST", "AT", "OPERATION", "PATH", "STOPPED OR CLIENT"];
        common.output.show_rows(&rows, headings, Clone::clone)
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
        let control = self.common.server.find()?;
        let began = Instant::now();
        loop {
            let left = self.within.saturating_sub(began.elapsed());
            let timeout_ms = u64::try_from(left.min(WAIT_MAX).as_millis()).ok();
            let wait = WaitAtGate { id: self.gate, count: Some(self.count), timeout_ms };
            match ask(&control, &wait) {
                Ok(waiting @ Waiting { .. }) => {
                    return self.common.output.show(&waiting, String::new);
                }
                Err(error) => match error.downcast_ref() {
                    Some(ClientError::Failed(failed)) if failed.kind == "timeout" => {
                        if left <= WAIT_MAX {
                            let text = failed.message.split(" after ").next().unwrap_or_default();
                            out::complain_of(text, "timeout");
                            return Ok(ExitCode::from(EXIT_DIFFERENT));
                        }
                    }
                    _ => return Err(error),
                },
            }
        }
    }
}
