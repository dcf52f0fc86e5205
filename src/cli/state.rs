//! `latchfs state`: the data of a server as a whole.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::locate::{ServerAndOutput, ask};
use super::table;
use crate::api::{self, StateEntry};

const EXAMPLE: &str = "\
Example:
  latchfs state save seeded
  latchfs state restore seeded # before each test
  latchfs state reset          # everything is removed";

/// Save all data of a running server, restore it, or remove it
///
/// Acts on all services of all accounts, also while clients are connected and mounts are in use. A
/// restore or reset closes open handles by force: programs get EIO from their descriptors. No ETag,
/// receipt or handle is issued twice.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLE)]
pub enum StateCommand {
    /// Save all data under a name
    ///
    /// A state of that name is replaced. It stays until it is deleted, also over a restart.
    #[command(after_help = "Example:\n  latchfs state save seeded")]
    Save {
        /// Letters, digits, dots, hyphens and underscores
        name: String,

        #[command(flatten)]
        common: ServerAndOutput,
    },
    /// Replace all data by a saved state
    ///
    /// Blobs, messages and entities come back equal, ETags included; files with their bytes,
    /// metadata and leases, and new ETags. The clock goes as it did when the state was saved.
    #[command(after_help = "Example:\n  latchfs state restore seeded")]
    Restore {
        /// The state
        name: String,

        #[command(flatten)]
        common: ServerAndOutput,
    },
    /// List the saved states
    ///
    /// A table on a terminal, otherwise a line for each with a tab between: its name, and when it
    /// was saved, or why it cannot be restored.
    #[command(after_help = "Example:\n  latchfs state list --json")]
    List(ServerAndOutput),
    /// Delete a saved state
    #[command(after_help = "Example:\n  latchfs state delete seeded")]
    Delete {
        /// The state
        name: String,

        #[command(flatten)]
        common: ServerAndOutput,
    },
    /// Remove everything: the server is as after a start with no data
    ///
    /// Shares that were named at the start exist again, empty. Gates and faults are removed, and
    /// the clock shows the system's time.
    #[command(after_help = "Example:\n  latchfs state reset")]
    Reset(ServerAndOutput),
}

impl StateCommand {
    pub fn run(&self) -> Result<ExitCode> {
        let common = match self {
            StateCommand::Save { common, .. }
            | StateCommand::Restore { common, .. }
            | StateCommand::List(common)
            | StateCommand::Delete { common, .. }
            | StateCommand::Reset(common) => common,
        };
        let server = match self {
            StateCommand::Restore { .. } | StateCommand::Reset(_) => common.server.for_deletion(),
            _ => common.server.clone(),
        };
        let control = server.find()?;
        let (value, words) = match self {
            StateCommand::Save { name, .. } => {
                let saved = ask(&control, &api::SaveState { name: name.clone() })?;
                (json!(saved), format!("all data is saved as {}\n", saved.name))
            }
            StateCommand::List(_) => {
                let api::StateList { states } = ask(&control, &api::GetStates {})?;
                (json!(states), lines(&states))
            }
            StateCommand::Restore { name, .. } => {
                let done = ask(&control, &api::RestoreState { name: name.clone() })?;
                (json!(done), format!("all data is that of state {name}\n"))
            }
            StateCommand::Delete { name, .. } => {
                let done = ask(&control, &api::DeleteState { name: name.clone() })?;
                (json!(done), format!("state {name} was deleted\n"))
            }
            StateCommand::Reset(_) => {
                (json!(ask(&control, &api::Reset {})?), "everything was removed\n".to_owned())
            }
        };
        common.output.show(&value, || words)
    }
}

fn lines(states: &[StateEntry]) -> String {
    let row = |state: &StateEntry| {
        let damaged = || state.damaged.as_ref().map(|why| format!("damaged: {why}"));
        [state.name.clone(), state.saved.clone().or_else(damaged).unwrap_or_default()]
    };
    table::text(["NAME", "SAVED"], &states.iter().map(row).collect::<Vec<_>>())
}
