//! Lines of the control protocol: one JSON object each, with its version `v`.
//!
//! What requests and answers hold is decided in [`super::protocol`].

use serde::Serialize;
use serde_json::{Map, Value};

use super::protocol::{ControlAnswer, ControlRequest};

/// The version spoken here.
pub const VERSION: u64 = 2;

/// A request as it was received.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedRequest {
    /// The account that is meant; none for the first of the server.
    pub account: Option<String>,
    pub request: ControlRequest,
}

pub fn read_request(line: &[u8]) -> Result<ReceivedRequest, String> {
    let mut object = read_object(line)?;
    let account = match object.remove("account") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name),
        Some(_) => return Err("the account must be a text".to_owned()),
    };
    let request = serde_json::from_value(Value::Object(object));
    Ok(ReceivedRequest { account, request: request.map_err(|error| error.to_string())? })
}

pub fn read_answer(line: &[u8]) -> Result<ControlAnswer, String> {
    let object = read_object(line)?;
    serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())
}

fn read_object(line: &[u8]) -> Result<Map<String, Value>, String> {
    let mut object: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| format!("not a JSON object: {error}"))?;
    match object.remove("v") {
        Some(version) if version.as_u64() == Some(VERSION) => Ok(object),
        Some(version) => Err(format!(
            "version {version} of the control protocol is not spoken here, only {VERSION}: use \
             the same latchfs for the server and the command"
        )),
        None => Err(format!("no version: a line carries \"v\":{VERSION}")),
    }
}

/// A request as a line.
pub fn write_request(request: &ControlRequest, account: Option<&str>) -> Vec<u8> {
    let mut object = object(request);
    if let Some(account) = account {
        object.insert("account".into(), account.into());
    }
    line(object)
}

/// An answer as a line.
pub fn write_answer(answer: &ControlAnswer) -> Vec<u8> {
    line(object(answer))
}

fn object(message: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(message) {
        Ok(Value::Object(object)) => object,
        other => unreachable!("a message is an object with text keys: {other:?}"),
    }
}

fn line(mut object: Map<String, Value>) -> Vec<u8> {
    object.insert("v".into(), VERSION.into());
    let mut line = Value::Object(object).to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::control::protocol::HoldRequest;

    #[test]
    fn a_request_and_an_answer_survive_the_way() {
        let hold = HoldRequest {
            path: "a\nb".into(),
            access: "rw".into(),
            share_mode: "none".into(),
            ..HoldRequest::default()
        };
        let request = ControlRequest::Hold(hold);
        for account in [None, Some("second".to_owned())] {
            let line = write_request(&request, account.as_deref());
            assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
            let request = request.clone();
            assert_eq!(read_request(&line).unwrap(), ReceivedRequest { account, request });
        }
        let answer = ControlAnswer::Closed { closed: 3 };
        assert_eq!(read_answer(&write_answer(&answer)).unwrap(), answer);
    }

    #[test]
    fn what_is_no_request_is_refused_with_the_reason() {
        for (line, part) in [
            (r#"{"do":"ping"}"#, "no version"),
            (r#"{"v":1,"do":"ping"}"#, "version 1"),
            (r#"{"v":2,"do":"pign"}"#, "unknown variant `pign`"),
            (r#"{"v":2,"do":"ping","x":1}"#, "unknown field `x`"),
            (r#"{"v":2,"do":"undelete"}"#, "missing field `path`"),
            (
                r#"{"v":2,"do":"hold","path":"a","access":"r","share_mode":"","shared":1}"#,
                "`shared`",
            ),
            (r#"{"v":2,"do":"ping","account":1}"#, "the account must be a text"),
            ("[]", "not a JSON object"),
            ("", "not a JSON object"),
        ] {
            let why = read_request(line.as_bytes()).unwrap_err();
            assert!(why.contains(part), "{line}: {why}");
        }
    }
}
