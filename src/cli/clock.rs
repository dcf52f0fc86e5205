//! `latchfs clock`: the time of a server, under a test's control.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};

use super::locate::{ServerAndOutput, ask};
use super::time::duration;
use crate::api::{ClockState, GetClock, TurnClock};

const EXAMPLE: &str = "\
Example:
  latchfs clock                # shows it
  latchfs clock advance 61s    # leases of a minute are over
  latchfs clock freeze";

/// Show or change the clock of a server
///
/// The clock decides when leases, SAS tokens, messages and the retention of deleted objects end,
/// and dates the changes of blobs, queues and entities. It only goes forward. The dates of signed
/// requests and bearer tokens are compared with the system's clock; times of files are the file
/// system's.
///
/// Without a command, shows it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, args_conflicts_with_subcommands = true)]
pub struct ClockCommand {
    #[command(subcommand)]
    command: Option<ClockSubcommand>,

    #[command(flatten)]
    common: ServerAndOutput,
}

#[derive(Debug, Subcommand)]
enum ClockSubcommand {
    /// Show the time of a server
    #[command(after_help = "Example:\n  latchfs clock show --json")]
    Show(ServerAndOutput),
    /// Turn the clock forward
    #[command(after_help = "Example:\n  latchfs clock advance 61s")]
    Advance {
        /// By how much, as in 500ms, 61s, 5m, 2h or 7d
        #[arg(value_parser = forward, allow_hyphen_values = true)]
        by: Duration,

        #[command(flatten)]
        common: ServerAndOutput,
    },
    /// Turn the clock forward to a moment
    #[command(after_help = "Example:\n  latchfs clock set 2030-01-01T00:00:00Z")]
    Set {
        /// The moment, as in 2030-01-01T00:00:00Z
        time: String,

        #[command(flatten)]
        common: ServerAndOutput,
    },
    /// Stop the clock: nothing expires by itself
    #[command(after_help = "Example:\n  latchfs clock freeze")]
    Freeze(ServerAndOutput),
    /// Let the clock go on from where it is
    #[command(after_help = "Example:\n  latchfs clock run")]
    Run(ServerAndOutput),
}

impl ClockCommand {
    pub fn run(&self) -> Result<ExitCode> {
        let mut turn = TurnClock::default();
        let common = match &self.command {
            None => &self.common,
            Some(ClockSubcommand::Show(common)) => common,
            Some(ClockSubcommand::Advance { by, common }) => {
                turn.advance_ms = Some(u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
                common
            }
            Some(ClockSubcommand::Set { time, common }) => {
                turn.set = Some(time.clone());
                common
            }
            Some(ClockSubcommand::Freeze(common)) => {
                turn.freeze = Some(true);
                common
            }
            Some(ClockSubcommand::Run(common)) => {
                turn.run = Some(true);
                common
            }
        };
        let control = common.server.find()?;
        let state = match &self.command {
            None | Some(ClockSubcommand::Show(_)) => ask(&control, &GetClock {})?,
            Some(_) => ask(&control, &turn)?,
        };
        common.output.show(&state, || words(&state) + "\n")
    }
}

/// Reads how far the clock is turned.
fn forward(text: &str) -> Result<Duration> {
    let back = text.strip_prefix('-').is_some_and(|rest| duration(rest).is_ok());
    if back {
        bail!("the clock only goes forward; `latchfs state reset` sets it to the system's time");
    }
    duration(text)
}

/// The time of a clock, and that of the system.
pub fn words(state: &ClockState) -> String {
    let frozen = if state.frozen { ", frozen" } else { "" };
    format!("{}{frozen} (the system's clock shows {})", state.now, state.system)
}
