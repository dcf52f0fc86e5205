//! The calls about the clock, gates and faults, and their answers, as JSON.
//!
//! Decides names and defaults of fields alone; values are checked in [`super`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Selects requests: those that match all of the given fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// file, blob, queue or table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The operation, such as `Put Blob`; `*` stands for any letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The path, such as `container/blob`; `*` stands for any letters but a slash, `**` for any. A
    /// container alone means all that is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Headers, with patterns that their values fit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

impl Requests {
    /// In a few words: the operation and the path.
    pub(super) fn words(&self) -> String {
        let operation = self.operation.as_deref().unwrap_or("any operation");
        match &self.path {
            Some(path) => format!("{operation} {path}"),
            None => operation.to_owned(),
        }
    }
}

/// Turns the clock: one of these.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1, "examples" = [
    { "advance_ms": 61000 }, { "set": "2190-01-02T03:04:05Z" }, { "freeze": true }, { "run": true },
]))]
pub struct TurnClock {
    /// Forward by so much
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advance_ms: Option<u64>,
    /// Forward to this moment, as in 2026-01-02T03:04:05Z
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("const" = true))]
    pub freeze: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("const" = true))]
    pub run: Option<bool>,
}

/// A gate to add.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [
    { "operation": "Put Blob", "path": "box/*" },
    {
        "service": "blob", "operation": "Put *", "path": "box/**", "headers": { "if-match": "*" },
        "at": "committed", "times": 1, "limit_ms": 10000
    },
]))]
pub struct NewGate {
    #[schemars(extend("enum" = ["file", "blob", "queue", "table", null]))]
    pub service: Option<String>,
    /// As in Put Blob; * stands for any letters
    pub operation: Option<String>,
    /// As in container/blob; a container alone means all in it; * stands for any letters but a
    /// slash, ** for any
    pub path: Option<String>,
    pub account: Option<String>,
    /// Headers, with patterns that their values fit
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// received or committed
    #[schemars(extend("default" = "received"))]
    pub at: Option<String>,
    /// How many requests stop, the next ones; all without it
    pub times: Option<u32>,
    /// How long each waits at most
    #[schemars(range(max = 3_600_000), extend("default" = 60_000))]
    pub limit_ms: Option<u64>,
}

impl NewGate {
    /// A gate for these requests.
    pub fn new(requests: Requests) -> Self {
        let Requests { service, operation, path, account, headers } = requests;
        Self { service, operation, path, account, headers, at: None, times: None, limit_ms: None }
    }
}

/// Waits until requests wait at a gate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WaitAtGate {
    pub id: u64,
    /// How many requests to wait for; 1 without it
    pub count: Option<u32>,
    /// For how long to wait; 30000 without it
    #[schemars(range(max = 600_000))]
    pub timeout_ms: Option<u64>,
}

/// Releases requests of a gate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{}, { "count": 1 }]))]
pub struct ReleaseGate {
    pub id: u64,
    /// Release only the first N requests; all if left out
    pub count: Option<u64>,
}

/// Releases one request.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    pub id: u64,
    /// `drop_after`: the request is done, and its connection is closed without the answer
    #[schemars(extend("enum" = ["drop_after", null]))]
    pub fault: Option<String>,
}

/// Ends one request: nothing is done, and its connection is closed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropRequest {
    pub id: u64,
}

/// Releases requests of one gate or of all, and tells how many there were.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{}]))]
pub struct ReleaseGates {
    /// Those of this gate
    pub gate: Option<u64>,
    /// This request alone
    pub request: Option<u64>,
    /// The first so many
    pub count: Option<u64>,
}

/// A fault to add.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [
    { "operation": "Put Blob", "action": "drop_after", "times": 1 },
    {
        "service": "blob", "action": { "answer": { "status": 503, "code": "ServerBusy" } },
        "probability": 0.5, "seed": 7
    },
    { "path": "box/**", "action": { "delay_ms": 5 }, "times": 1 },
]))]
pub struct NewFault {
    #[schemars(extend("enum" = ["file", "blob", "queue", "table", null]))]
    pub service: Option<String>,
    pub operation: Option<String>,
    pub path: Option<String>,
    pub account: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// An [`Action`]: read where the forms of one can be told.
    #[schemars(with = "Action")]
    pub action: Value,
    pub times: Option<u32>,
    /// Instead of times
    #[schemars(range(min = 0.0, max = 1.0))]
    pub probability: Option<f64>,
    pub seed: Option<u64>,
}

impl NewFault {
    /// A fault for these requests.
    pub fn new(requests: Requests, action: &Action) -> Self {
        let Requests { service, operation, path, account, headers } = requests;
        let action = json!(action);
        Self { service, operation, path, account, headers, action, ..Self::default() }
    }
}

/// The gate that was added.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GateAdded {
    pub gate: u64,
}

/// The fault that was added.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FaultAdded {
    pub fault: u64,
}

/// How many gates or faults were removed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    pub removed: usize,
}

/// How many requests wait at a gate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    pub waiting: usize,
}

/// How many requests went on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Went {
    pub released: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GateList {
    pub gates: Vec<GateEntry>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FaultList {
    pub faults: Vec<FaultEntry>,
}

/// A fault as it travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultEntry {
    /// Its number, once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    pub requests: Requests,
    /// The effect on the requests.
    pub action: Action,
    /// How often; always without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Where the row of yes and no of that starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How many requests have met it.
    #[serde(default)]
    pub met: u64,
}

/// The effect of a fault on a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// It is refused, and nothing is done.
    Answer {
        #[schemars(range(min = 400, max = 599))]
        status: u16,
        #[schemars(regex(pattern = "^[A-Za-z0-9]{1,64}$"))]
        code: String,
    },
    /// It is carried out later.
    DelayMs(#[schemars(range(max = 3_600_000))] u64),
    /// The connection is closed, and nothing is done.
    DropBefore,
    /// It is done, and the connection is closed without the answer.
    DropAfter,
    /// It is done, and the answer's body ends after so many bytes.
    CutBytes(u64),
    /// It is done, and the answer's body comes at so many bytes a second.
    BytesPerSecond(#[schemars(range(min = 1))] u64),
}

/// The clock of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockState {
    pub now: String,
    /// The time of the system's clock.
    pub system: String,
    pub frozen: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateEntry {
    pub id: u64,
    pub requests: Requests,
    pub at: String,
    /// How many more; all without it.
    pub times: Option<u32>,
    /// How long each waits at most.
    pub limit_ms: u64,
    /// How many have stopped so far.
    pub stopped: u64,
    /// Those that wait now, in the order they came.
    pub waiting: Vec<WaitingEntry>,
}

/// A request that waits at a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingEntry {
    pub request: u64,
    pub operation: String,
    /// The path of the request without the account.
    pub path: String,
    pub client: String,
    /// The ID that its client gave it.
    pub client_request: Option<String>,
    /// The program that the client says it is.
    #[serde(default)]
    pub user_agent: Option<String>,
    /// The process of a client on this machine, where it can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The program of that process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// For how long it has waited.
    pub waits_ms: u64,
}
