//! Calls about all data at once: saved, restored, reset.

use serde_json::{Value, json};

use super::bench::Nothing;
use super::call::ApiCall;
use super::failure::ApiFailure;
use super::fields;
use crate::api::control::states::StateRequest;
use crate::api::control::{ControlAnswer, ControlRequest};

pub fn list(_: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::State(StateRequest::List {}))
}

pub fn save(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    let Nothing {} = call.body()?;
    Ok(ControlRequest::State(StateRequest::Save { name: name(call) }))
}

/// The state that was saved.
pub fn saved(_: &ApiCall, answer: ControlAnswer) -> Value {
    match answer {
        ControlAnswer::States { states } => {
            states.first().map_or(Value::Null, |state| json!(state))
        }
        other => fields(other),
    }
}

pub fn delete(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::State(StateRequest::Delete { name: name(call) }))
}

pub fn deleted(call: &ApiCall, _: ControlAnswer) -> Value {
    json!({ "deleted": name(call) })
}

pub fn restore(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    let Nothing {} = call.body()?;
    Ok(ControlRequest::State(StateRequest::Restore { name: name(call) }))
}

pub fn restored(call: &ApiCall, _: ControlAnswer) -> Value {
    json!({ "restored": name(call) })
}

pub fn reset(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    let Nothing {} = call.body()?;
    Ok(ControlRequest::State(StateRequest::Reset {}))
}

pub fn was_reset(_: &ApiCall, _: ControlAnswer) -> Value {
    json!({ "reset": true })
}

fn name(call: &ApiCall) -> String {
    call.in_path("name").to_owned()
}
