//! Calls about what tests control: the clock, gates and faults.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::call::ApiCall;
use super::failure::ApiFailure;
use super::routes::{Param, ParameterKind};
use super::{Api, WAIT_MS_MAX, WAITS_MAX, fields};
use crate::api::control::controls::{
    ClockRequest, FaultEntry, FaultRequest, GateEntry, GateRequest, Requests,
};
use crate::api::control::{ControlAnswer, ControlRequest};

/// How many requests are waited for.
pub const COUNT: Param = Param {
    name: "count",
    kind: ParameterKind::Number { most: u32::MAX as u64 },
    required: false,
    about: "How many requests to wait for; 1 without it",
};

pub const TIMEOUT: Param = Param {
    name: "timeout_ms",
    kind: ParameterKind::Number { most: WAIT_MS_MAX },
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
struct GateBody {
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
struct FaultBody {
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

pub fn clock(_: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Clock(ClockRequest::Show {}))
}

pub fn turn_clock(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    let ClockTurn { advance_ms, set, freeze, run } = call.body()?;
    Ok(ControlRequest::Clock(match (advance_ms, set, freeze, run) {
        (Some(ms), None, None, None) => ClockRequest::Advance { ms },
        (None, Some(time), None, None) => ClockRequest::Set { time },
        (None, None, Some(true), None) => ClockRequest::Freeze {},
        (None, None, None, Some(true)) => ClockRequest::Run {},
        _ => {
            let why = "give one of advance_ms, set, \"freeze\": true and \"run\": true";
            return Err(ApiFailure::bad(why));
        }
    }))
}

pub fn gates(_: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Gate(GateRequest::List {}))
}

pub fn add_gate(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    let GateBody { service, operation, path, account, headers, at, times, limit_ms } =
        call.body()?;
    let requests = Requests { service, operation, path, account, headers };
    let at = at.unwrap_or_else(|| "received".to_owned());
    Ok(ControlRequest::Gate(GateRequest::Add { requests, at, times, limit_ms }))
}

pub fn remove_gates(_: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Gate(GateRequest::Remove { id: None }))
}

pub fn remove_gate(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Gate(GateRequest::Remove { id: Some(call.id("id")?) }))
}

pub fn gate_added(_: &ApiCall, answer: ControlAnswer) -> Value {
    added("gate", answer)
}

pub fn fault_added(_: &ApiCall, answer: ControlAnswer) -> Value {
    added("fault", answer)
}

pub fn removed(_: &ApiCall, answer: ControlAnswer) -> Value {
    counted("removed", answer)
}

pub fn faults(_: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Fault(FaultRequest::List {}))
}

pub fn add_fault(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    let FaultBody { service, operation, path, account, headers, action, times, probability, seed } =
        call.body()?;
    let requests = Requests { service, operation, path, account, headers };
    let action = serde_json::from_value(action).map_err(|_| ApiFailure::bad(ACTION_FORM))?;
    let entry = FaultEntry { id: None, requests, action, times, probability, seed, met: 0 };
    Ok(ControlRequest::Fault(FaultRequest::Add(entry)))
}

pub fn remove_faults(_: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Fault(FaultRequest::Remove { id: None }))
}

pub fn remove_fault(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Fault(FaultRequest::Remove { id: Some(call.id("id")?) }))
}

impl Api {
    pub(super) async fn gate(&self, call: &ApiCall) -> Result<Value, ApiFailure> {
        Ok(json!(self.find_gate(call).await?))
    }

    async fn find_gate(&self, call: &ApiCall) -> Result<GateEntry, ApiFailure> {
        let id = call.id("id")?;
        let answer = self.ask(call, ControlRequest::Gate(GateRequest::List {})).await?;
        let ControlAnswer::Gates { gates } = answer else { return Err(unexpected()) };
        let found = gates.into_iter().find(|gate| gate.id == id);
        found.ok_or_else(|| ApiFailure::not_found(format!("there is no gate {id}")))
    }

    /// Waits until so many requests wait at a gate.
    pub(super) async fn wait_at_gate(&self, call: &ApiCall) -> Result<Value, ApiFailure> {
        let id = call.id("id")?;
        let count = usize::try_from(call.number("count").unwrap_or(1)).unwrap_or(usize::MAX);
        let patience = Duration::from_millis(call.number("timeout_ms").unwrap_or(TIMEOUT_MS));
        let _place = self.waits.try_acquire().map_err(|_| {
            ApiFailure::busy(format!("{WAITS_MAX} calls wait already: try again later"))
        })?;
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let wait_ms = u64::try_from(left.min(SLICE).as_millis()).unwrap_or(u64::MAX);
            let request = ControlRequest::Gate(GateRequest::Wait { id, count, wait_ms });
            match self.ask(call, request).await? {
                ControlAnswer::Counted { count: there } if there >= count => {
                    return Ok(json!({ "waiting": there }));
                }
                ControlAnswer::Counted { count: there } if left.is_zero() => {
                    return Err(ApiFailure::timeout(format!(
                        "{there} of {count} requests wait at gate {id} after {} ms",
                        patience.as_millis()
                    )));
                }
                ControlAnswer::Counted { .. } => {}
                _ => return Err(unexpected()),
            }
        }
    }

    /// Lets requests of a gate go.
    pub(super) async fn release_gate(&self, call: &ApiCall) -> Result<Value, ApiFailure> {
        let ReleaseCount { count } = call.body()?;
        let id = Some(self.find_gate(call).await?.id);
        let request = ControlRequest::Gate(GateRequest::Release { id, request: None, count });
        Ok(counted("released", self.ask(call, request).await?))
    }

    /// Lets one request go.
    pub(super) async fn release_request(&self, call: &ApiCall) -> Result<Value, ApiFailure> {
        let Nothing {} = call.body()?;
        let id = call.id("id")?;
        let request = GateRequest::Release { id: None, request: Some(id), count: None };
        match self.ask(call, ControlRequest::Gate(request)).await? {
            ControlAnswer::Counted { count: 0 } => {
                Err(ApiFailure::not_found(format!("request {id} waits at no gate")))
            }
            answer => Ok(counted("released", answer)),
        }
    }
}

fn unexpected() -> ApiFailure {
    ApiFailure::failed("the server answered something else than it was asked for")
}

fn added(name: &str, answer: ControlAnswer) -> Value {
    match answer {
        ControlAnswer::Added { id } => json!({ name: id }),
        other => fields(other),
    }
}

fn counted(name: &str, answer: ControlAnswer) -> Value {
    match answer {
        ControlAnswer::Counted { count } => json!({ name: count }),
        other => fields(other),
    }
}
