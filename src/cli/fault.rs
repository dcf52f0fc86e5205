//! `latchfs fault`: faults that a test injects into requests.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};

use super::locate::{ServerAndOutput, ask};
use super::matching::{Matching, remove, show_added, words_of};
use super::out::usage;
use super::time::duration;
use crate::api::{
    Action, FaultEntry, FaultList, GetFaults, NewFault, RemoveFault as RemoveOne,
    RemoveFaults as RemoveAll,
};

const EXAMPLE: &str = "\
Example:
  latchfs fault add 'Put Blob' 'docs/*' --drop after --times 1   # an acknowledgement is lost
  latchfs fault add 'Get *' --answer 503:ServerBusy --probability 0.1 --seed 7
  latchfs fault remove --all";

/// Make requests fail, take longer or lose their answer
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLE)]
pub enum FaultCommand {
    Add(Box<AddFault>),
    /// List the faults
    ///
    /// A table on a terminal, otherwise a line for each with tabs between: number, operation, path,
    /// action, how often, how many requests have met it.
    #[command(after_help = "Example:\n  latchfs fault list --json")]
    List(ServerAndOutput),
    /// Remove a fault
    #[command(after_help = "Example:\n  latchfs fault remove 3")]
    Remove {
        /// The fault
        fault: Option<u64>,

        /// All faults
        #[arg(long, conflicts_with = "fault")]
        all: bool,

        #[command(flatten)]
        common: ServerAndOutput,
    },
}

// What the values mean stands in the help of the option, which would be long otherwise.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Drop {
    Before,
    After,
}

/// Add a fault; prints its number
///
/// Of several faults that match a request, the first one applies.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs fault add 'Put Blob' docs/a --drop after --times 1")]
pub struct AddFault {
    #[command(flatten)]
    matching: Matching,

    #[command(flatten)]
    what: FaultEffect,

    /// Apply the fault to the next N requests only [default: all]
    #[arg(long, value_name = "N", env = "LATCHFS_TIMES", conflicts_with = "probability")]
    times: Option<u32>,

    /// Probability that the fault applies, 0 to 1
    #[arg(long, value_name = "P", env = "LATCHFS_PROBABILITY")]
    probability: Option<f64>,

    /// Seed of the random choice: the same seed chooses the same requests
    #[arg(long, value_name = "N", env = "LATCHFS_FAULT_SEED", requires = "probability")]
    seed: Option<u64>,

    #[command(flatten)]
    common: ServerAndOutput,
}

/// The effect of the fault on the requests
#[derive(Debug, Args)]
#[group(multiple = false)]
struct FaultEffect {
    /// Refuse the request and do nothing; for calls on a mount, give an errno such as EIO
    #[arg(long, value_name = "STATUS:CODE|ERRNO", env = "LATCHFS_ANSWER")]
    answer: Option<String>,

    /// Carry the request out after this time
    #[arg(long, value_name = "TIME", env = "LATCHFS_DELAY", value_parser = duration)]
    delay: Option<Duration>,

    /// Close the connection before the request is carried out, or after it, without the answer
    #[arg(long, value_enum, value_name = "WHEN", env = "LATCHFS_DROP")]
    drop: Option<Drop>,

    /// Cut the body of the answer after N bytes
    #[arg(long, value_name = "N", env = "LATCHFS_CUT")]
    cut: Option<u64>,

    /// Send the body of the answer at N bytes a second
    #[arg(long, value_name = "N", env = "LATCHFS_SLOW")]
    slow: Option<u64>,
}

impl FaultCommand {
    pub fn run(&self) -> Result<ExitCode> {
        match self {
            FaultCommand::Add(add) => add.run(),
            FaultCommand::List(common) => {
                let FaultList { faults } = ask(&common.server.find()?, &GetFaults {})?;
                let headings = ["FAULT", "OPERATION", "PATH", "WHAT", "HOW OFTEN", "MET"];
                common.output.show_rows(&faults, headings, row)
            }
            FaultCommand::Remove { fault, all, common } => {
                let one = fault.map(|id| RemoveOne { id });
                remove("fault", one, all.then_some(RemoveAll {}), common)
            }
        }
    }
}

impl FaultEffect {
    fn action(&self) -> Result<Action> {
        if let Some(answer) = &self.answer {
            let read = match answer.split_once(':') {
                Some((status, code)) => status.parse().ok().map(|status| (status, code)),
                // The name of an errno, for calls on a mount.
                None => answer.starts_with('E').then_some((500, answer.as_str())),
            };
            let read = read.map(|(status, code)| Action::Answer { status, code: code.to_owned() });
            return read.with_context(|| {
                format!(
                    "--answer '{answer}': expected STATUS:CODE, as in 503:ServerBusy, or an errno"
                )
            });
        }
        if let Some(time) = self.delay {
            return Ok(Action::DelayMs(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)));
        }
        Ok(match (self.drop, self.cut, self.slow) {
            (Some(Drop::Before), ..) => Action::DropBefore,
            (Some(Drop::After), ..) => Action::DropAfter,
            (None, Some(bytes), _) => Action::CutBytes(bytes),
            (None, None, Some(speed)) => Action::BytesPerSecond(speed),
            (None, None, None) => {
                usage!("give one of --answer, --delay, --drop, --cut and --slow")
            }
        })
    }
}

impl AddFault {
    fn run(&self) -> Result<ExitCode> {
        let fault = NewFault {
            times: self.times,
            probability: self.probability,
            seed: self.seed,
            ..NewFault::new(self.matching.requests()?, &self.what.action()?)
        };
        let added = ask(&self.common.server.find()?, &fault)?;
        show_added(added.fault, "fault", self.common.output)
    }
}

fn row(fault: &FaultEntry) -> [String; 6] {
    let (operation, path) = words_of(&fault.requests);
    let what = match &fault.action {
        Action::Answer { status, code } => format!("answer {status} {code}"),
        Action::DelayMs(ms) => format!("delay {ms} ms"),
        Action::DropBefore => "drop before".to_owned(),
        Action::DropAfter => "drop after".to_owned(),
        Action::CutBytes(bytes) => format!("cut after {bytes} bytes"),
        Action::BytesPerSecond(speed) => format!("{speed} bytes a second"),
    };
    let how_often = match (fault.times, fault.probability) {
        (Some(left), _) => format!("{left} more"),
        (None, Some(probability)) => format!("probability {probability}"),
        (None, None) => "always".to_owned(),
    };
    let id = fault.id.map(|id| id.to_string()).unwrap_or_default();
    [id, operation, path, what, how_often, fault.met.to_string()]
}
