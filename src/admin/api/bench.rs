//! Calls about what tests control: the clock, gates and faults.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::call::Call;
use super::failure::Failure;
use super::routes::{Kind, Param};
use super::{Api, WAIT_MS_MAX, WAITS_MAX, fields};
use crate::control::controls::{
    ClockRequest, FaultEntry, FaultRequest, GateEntry, GateRequest, Requests,
};
use crate::control::{Answer, Request};

/// How many requests are waited for.
pub const COUNT: Param = Param {
    name: "count",
    kind: Kind::Number { most: u32::MAX as u64 },
    required: false,
    about: "How many requests to wait for; 1 without it",
};

/// For how long.
pub const TIMEOUT: Param = Param {
    name: "timeout_ms",
    kind: Kind::Number { most: WAIT_MS_MAX },
    required: false,
    about: "For how long to wait; 30000 without it",
};

const TIMEOUT_MS: u64 = 30_000;

const ACTION_FORM: &str = "'action' is one of {\"answer\": {\"status\": 503, \"code\": \
                           \"ServerBusy\"}}, {\"delay_ms\": 100}, \"drop_before\", \"drop_after\", \
                           {\"cut_bytes\": 10} and {\"bytes_per_second\": 100}";

/// The longest wait of one thread: a client that goes away keeps its thread no longer.
const SLICE: Duration = Duration::from_millis(200);

/// How the clock is turned: one of these.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockTurn {
    advance_ms: Option<u64>,
    set: Option<String>,
    freeze: Option<bool>,
    run: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewGate {
    service: Option<String>,
    operation: Option<String>,
    path: Option<String>,
    account: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    at: Option<String>,
    times: Option<u32>,
    limit_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewFault {
    service: Option<String>,
    operation: Option<String>,
    path: Option<String>,
    account: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    action: Value,
    times: Option<u32>,
    probability: Option<f64>,
    seed: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseCount {
    count: Option<usize>,
}

/// A body that says nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

pub fn clock(_: &Call) -> Result<Request, Failure> {
    Ok(Request::Clock(ClockRequest::Show {}))
}

pub fn turn_clock(call: &Call) -> Result<Request, Failure> {
    let ClockTurn { advance_ms, set, freeze, run } = call.body()?;
    Ok(Request::Clock(match (advance_ms, set, freeze, run) {
        (Some(ms), None, None, None) => ClockRequest::Advance { ms },
        (None, Some(time), None, None) => ClockRequest::Set { time },
        (None, None, Some(true), None) => ClockRequest::Freeze {},
        (None, None, None, Some(true)) => ClockRequest::Run {},
        _ => {
            let why = "give one of advance_ms, set, \"freeze\": true and \"run\": true";
            return Err(Failure::bad(why));
        }
    }))
}

pub fn gates(_: &Call) -> Result<Request, Failure> {
    Ok(Request::Gate(GateRequest::List {}))
}

pub fn add_gate(call: &Call) -> Result<Request, Failure> {
    let NewGate { service, operation, path, account, headers, at, times, limit_ms } =
        call.body()?;
    let requests = Requests { service, operation, path, account, headers };
    let at = at.unwrap_or_else(|| "received".to_owned());
    Ok(Request::Gate(GateRequest::Add { requests, at, times, limit_ms }))
}

pub fn remove_gates(_: &Call) -> Result<Request, Failure> {
    Ok(Request::Gate(GateRequest::Remove { id: None }))
}

pub fn remove_gate(call: &Call) -> Result<Request, Failure> {
    Ok(Request::Gate(GateRequest::Remove { id: Some(call.id("id")?) }))
}

pub fn gate_added(_: &Call, answer: Answer) -> Value {
    added("gate", answer)
}

pub fn fault_added(_: &Call, answer: Answer) -> Value {
    added("fault", answer)
}

pub fn removed(_: &Call, answer: Answer) -> Value {
    counted("removed", answer)
}

pub fn faults(_: &Call) -> Result<Request, Failure> {
    Ok(Request::Fault(FaultRequest::List {}))
}

pub fn add_fault(call: &Call) -> Result<Request, Failure> {
    let NewFault { service, operation, path, account, headers, action, times, probability, seed } =
        call.body()?;
    let requests = Requests { service, operation, path, account, headers };
    let action = serde_json::from_value(action).map_err(|_| Failure::bad(ACTION_FORM))?;
    let entry = FaultEntry { id: None, requests, action, times, probability, seed, met: 0 };
    Ok(Request::Fault(FaultRequest::Add(entry)))
}

pub fn remove_faults(_: &Call) -> Result<Request, Failure> {
    Ok(Request::Fault(FaultRequest::Remove { id: None }))
}

pub fn remove_fault(call: &Call) -> Result<Request, Failure> {
    Ok(Request::Fault(FaultRequest::Remove { id: Some(call.id("id")?) }))
}

impl Api {
    /// One gate.
    pub(super) async fn gate(&self, call: &Call) -> Result<Value, Failure> {
        Ok(json!(self.find_gate(call).await?))
    }

    async fn find_gate(&self, call: &Call) -> Result<GateEntry, Failure> {
        let id = call.id("id")?;
        let answer = self.ask(call, Request::Gate(GateRequest::List {})).await?;
        let Answer::Gates { gates } = answer else { return Err(unexpected()) };
        let found = gates.into_iter().find(|gate| gate.id == id);
        found.ok_or_else(|| Failure::not_found(format!("there is no gate {id}")))
    }

    /// Waits until so many requests wait at a gate.
    pub(super) async fn wait_at_gate(&self, call: &Call) -> Result<Value, Failure> {
        let id = call.id("id")?;
        let count = usize::try_from(call.number("count").unwrap_or(1)).unwrap_or(usize::MAX);
        let patience = Duration::from_millis(call.number("timeout_ms").unwrap_or(TIMEOUT_MS));
        let _place = self.waits.try_acquire().map_err(|_| {
            Failure::busy(format!("{WAITS_MAX} calls wait already: try again later"))
        })?;
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let wait_ms = u64::try_from(left.min(SLICE).as_millis()).unwrap_or(u64::MAX);
            let request = Request::Gate(GateRequest::Wait { id, count, wait_ms });
            match self.ask(call, request).await? {
                Answer::Counted { count: there } if there >= count => {
                    return Ok(json!({ "waiting": there }));
                }
                Answer::Counted { count: there } if left.is_zero() => {
                    return Err(Failure::timeout(format!(
                        "{there} of {count} requests wait at gate {id} after {} ms",
                        patience.as_millis()
                    )));
                }
                Answer::Counted { .. } => {}
                _ => return Err(unexpected()),
            }
        }
    }

    /// Lets requests of a gate go.
    pub(super) async fn release_gate(&self, call: &Call) -> Result<Value, Failure> {
        let ReleaseCount { count } = call.body()?;
        let id = Some(self.find_gate(call).await?.id);
        let request = Request::Gate(GateRequest::Release { id, request: None, count });
        Ok(counted("released", self.ask(call, request).await?))
    }

    /// Lets one request go.
    pub(super) async fn release_request(&self, call: &Call) -> Result<Value, Failure> {
        let Nothing {} = call.body()?;
        let id = call.id("id")?;
        let request = GateRequest::Release { id: None, request: Some(id), count: None };
        match self.ask(call, Request::Gate(request)).await? {
            Answer::Counted { count: 0 } => {
                Err(Failure::not_found(format!("request {id} waits at no gate")))
            }
            answer => Ok(counted("released", answer)),
        }
    }
}

fn unexpected() -> Failure {
    Failure::failed("the server answered something else than it was asked for")
}

fn added(name: &str, answer: Answer) -> Value {
    match answer {
        Answer::Added { id } => json!({ name: id }),
        other => fields(other),
    }
}

fn counted(name: &str, answer: Answer) -> Value {
    match answer {
        Answer::Counted { count } => json!({ name: count }),
        other => fields(other),
    }
}
