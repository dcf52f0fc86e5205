//! The calls about explorations and their answers, as JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::report::Finding;

/// Begins an exploration. A server has one at a time; its clock stands meanwhile.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "clients": ["one", "two"] }))]
pub struct CreateExploration {
    /// The names of the clients, 1 to 8: each gets a key of its own
    pub clients: Vec<String>,
    /// The saved state that each run begins with; without it the test resets and sets up
    pub state: Option<String>,
    /// The most runs; 200 without it
    pub budget: Option<u32>,
    /// The most answers that are dropped in a run; 0 without it
    pub drops: Option<u32>,
    /// By how much the clock may be advanced in a run, each at most once
    #[serde(default)]
    pub advance_ms: Vec<u64>,
    /// The most steps of a run; 200 without it
    pub max_steps: Option<u32>,
    /// The seed of the random runs at the end of the budget
    pub seed: Option<u64>,
    /// A token: that order is run, and nothing else
    pub replay: Option<String>,
    /// How long a client that is not on this machine must be silent to count as blocked; 250
    /// without it
    pub settle_ms: Option<u64>,
    /// The exploration ends by itself after so long without a call or a request; 60000 without it
    pub idle_ms: Option<u64>,
    /// The process of the test, on this machine: the exploration ends with it
    pub owner: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplorationCreated {
    pub exploration: u64,
    /// The connection string of each client.
    pub clients: BTreeMap<String, String>,
}

/// Begins the next run: ends requests of the run before, and restores the state.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginRun {
    pub id: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunBegun {
    /// The number of the run; none if the exploration is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// `explore`, `random`, `shrink`, `confirm` or `replay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// No further run is needed.
    #[serde(default)]
    pub done: bool,
}

/// Says that a client begins or has ended. The answer to `started` comes when the client may begin.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "state": "started", "pid": 4711 }))]
pub struct TellClient {
    pub id: u64,
    pub run: u64,
    pub name: String,
    #[schemars(extend("enum" = ["started", "finished"]))]
    pub state: String,
    /// The client's process on this machine, if it has one of its own or shares one
    pub pid: Option<u32>,
    /// The client's threads, as the system numbers them: opens on a mount are known by them
    #[serde(default)]
    pub threads: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientTold {
    pub client: String,
    pub state: String,
}

/// A step of a client that the server does not see by itself. The answer comes when the step is
/// chosen; the client does it then.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "client": "one", "name": "rename", "objects": ["file:docs/a"], "writes": true,
}))]
pub struct TakeStep {
    pub id: u64,
    pub run: u64,
    pub client: String,
    pub name: String,
    /// The objects that it concerns, as in `file:docs/a`; without any, all
    #[serde(default)]
    pub objects: Vec<String>,
    /// Whether it changes them
    #[serde(default)]
    pub writes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepTaken {
    /// The number of the step in the run, from 1.
    pub step: u64,
}

/// Asks how a run goes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetRun {
    pub id: u64,
    pub run: u64,
    /// Answer when the run no longer goes on, or after so long
    pub wait_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunState {
    pub run: u64,
    /// `running`; `over`: all clients have finished; `stuck`: all are blocked and none waits for
    /// its turn; `livelock`: the steps are used up; `mismatch`: the token is of another test.
    pub state: String,
    /// What to do about a run that is stuck, a livelock or a mismatch; and what else was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    pub clients: Vec<RunClient>,
    /// The steps so far.
    pub order: Vec<ExploredStep>,
}

/// Where a client is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunClient {
    pub client: String,
    /// `expected`, `waiting`, `running`, `blocked` or `finished`.
    pub state: String,
    /// The request that waits for its turn, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<ExploredStep>,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExploredStep {
    /// The client; `clock` for the clock.
    pub client: String,
    pub operation: String,
    pub object: String,
    /// The step as it is in the token: `A`, `A!` with its answer dropped, `A/2`, `+16`, `^A`.
    pub choice: String,
    /// The status of its answer, once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// Ends a run with the verdict of the test.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "failed": true, "signature": "AssertionError" }))]
pub struct EndRun {
    pub id: u64,
    pub run: u64,
    pub failed: bool,
    /// The kind of the failure, without texts that differ from run to run: failures with one
    /// signature are the same
    pub signature: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunEnded {
    /// `run`: another run is to begin; `done`.
    pub next: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExplorationList {
    pub explorations: Vec<Exploration>,
}

/// What an exploration has found.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Exploration {
    pub exploration: u64,
    pub clients: Vec<String>,
    /// No further run is needed.
    pub done: bool,
    /// It has ended: its keys are gone.
    pub ended: bool,
    /// How many runs there were.
    pub runs: u64,
    /// How many runs were cut off, since they could show nothing new.
    pub pruned: u64,
    /// All orders that matter were run.
    pub complete: bool,
    /// Why the search is not complete: a sentence each.
    pub incomplete: Vec<String>,
    /// How many times the clients did not do the same in the same order.
    pub divergences: u64,
    /// In how many runs a client waited for something outside storage.
    pub blocked: u64,
    /// Requests that came after their run had ended, and were not done.
    pub stragglers: u64,
    /// What else a user must know: a sentence each.
    pub notes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ExplorationFailure>,
}

/// A run that failed, made as short as possible.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExplorationFailure {
    /// Runs this order again: `replay`.
    pub token: String,
    pub order: Vec<ExploredStep>,
    pub signature: String,
    /// The run that failed first.
    pub run: u64,
    /// The order has failed again when it was repeated.
    pub confirmed: bool,
    /// The findings of the report on that run.
    pub report: Vec<Finding>,
}
