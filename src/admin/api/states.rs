//! Calls about all data at once: saved, restored, reset.

use serde_json::{Value, json};

use super::bench::Nothing;
use super::call::Call;
use super::failure::Failure;
use super::fields;
use crate::control::states::StateRequest;
use crate::control::{Answer, Request};

pub fn list(_: &Call) -> Result<Request, Failure> {
    Ok(Request::State(StateRequest::List {}))
}

pub fn save(call: &Call) -> Result<Request, Failure> {
    let Nothing {} = call.body()?;
    Ok(Request::State(StateRequest::Save { name: name(call) }))
}

/// The state that was saved.
pub fn saved(_: &Call, answer: Answer) -> Value {
    match answer {
        Answer::States { states } => states.first().map_or(Value::Null, |state| json!(state)),
        other => fields(other),
    }
}

pub fn delete(call: &Call) -> Result<Request, Failure> {
    Ok(Request::State(StateRequest::Delete { name: name(call) }))
}

pub fn deleted(call: &Call, _: Answer) -> Value {
    json!({ "deleted": name(call) })
}

pub fn restore(call: &Call) -> Result<Request, Failure> {
    let Nothing {} = call.body()?;
    Ok(Request::State(StateRequest::Restore { name: name(call) }))
}

pub fn restored(call: &Call, _: Answer) -> Value {
    json!({ "restored": name(call) })
}

pub fn reset(call: &Call) -> Result<Request, Failure> {
    let Nothing {} = call.body()?;
    Ok(Request::State(StateRequest::Reset {}))
}

pub fn was_reset(_: &Call, _: Answer) -> Value {
    json!({ "reset": true })
}

fn name(call: &Call) -> String {
    call.in_path("name").to_owned()
}
