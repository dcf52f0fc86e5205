//! Calls that show something, or mend it: status, handles, why, history, leases, pending files.

use serde::Deserialize;
use serde_json::Value;

use super::super::site::Peer;
use super::call::ApiCall;
use super::failure::ApiFailure;
use super::routes::{Param, ParameterKind};
use super::{Api, fields};
use crate::api::control::address::PrintedFile;
use crate::api::control::{ControlAnswer, ControlRequest};

pub const OBJECT: Param = Param {
    name: "object",
    kind: ParameterKind::Text,
    required: false,
    about: "file:SHARE/PATH or SHARE:/PATH, blob:CONTAINER/NAME, queue:NAME[/ID] or \
            table:TABLE/PARTITION/ROW",
};

/// The object that a call is about.
pub const ABOUT: Param = Param { required: true, ..OBJECT };

/// A file in a share.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileAt {
    share: Option<String>,
    path: String,
}

/// A lease to end.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LeaseBreak {
    object: String,
    period: Option<u32>,
}

/// An answer as it is.
pub fn plain(_: &ApiCall, answer: ControlAnswer) -> Value {
    fields(answer)
}

pub fn status(_: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Status {})
}

/// The status; without the token on the admin address, where answers are shown to others.
pub fn told_status(call: &ApiCall, answer: ControlAnswer) -> Value {
    let mut value = fields(answer);
    if call.peer == Peer::Stranger
        && let Value::Object(object) = &mut value
    {
        object.remove("admin_token");
    }
    value
}

pub fn connection(_: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Connection {})
}

pub fn handles(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    let (share_name, path) = (call.text("share"), call.text("path"));
    Ok(ControlRequest::Handles { share_name, path, recursive: call.flag("recursive") })
}

pub fn locks(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Locks { share_name: call.text("share"), path: call.text("path") })
}

pub fn pending(_: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Pending {})
}

pub fn leases(_: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Leases {})
}

pub fn messages(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::Messages { queue: call.text("queue") })
}

pub fn why(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    let object = call.text("object").unwrap_or_default();
    Ok(match file_of(&object) {
        Some((share, path)) => ControlRequest::Why { share_name: Some(share), path },
        None => ControlRequest::WhyObject { object },
    })
}

pub fn history(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    Ok(ControlRequest::History { object: call.text("object") })
}

pub fn undelete(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    let FileAt { share, path } = call.body()?;
    Ok(ControlRequest::Undelete { share_name: share, path })
}

pub fn break_lease(call: &ApiCall) -> Result<ControlRequest, ApiFailure> {
    let LeaseBreak { object, period } = call.body()?;
    Ok(match file_of(&object) {
        Some((share, path)) => ControlRequest::BreakLease { share_name: Some(share), path, period },
        None => ControlRequest::BreakObjectLease { object, period },
    })
}

/// The share and the path of an object that is a file or a share. Leases of shares are written
/// `share:NAME` too.
fn file_of(object: &str) -> Option<(String, String)> {
    if let Some(share) = object.strip_prefix("share:") {
        return Some((share.to_owned(), String::new()));
    }
    // An account before the share is left in place: the one of the call is meant.
    PrintedFile::read(object)
        .filter(|file| file.account.is_none())
        .map(|file| (file.share, file.path))
}

impl Api {
    /// Closes a handle by force; a handle that is not there is an error.
    pub(super) async fn close_handle(&self, call: &ApiCall) -> Result<Value, ApiFailure> {
        let handle = call.id("handle")?;
        let (share_name, all) = (call.text("share"), false);
        let request = ControlRequest::CloseHandle { share_name, handle: Some(handle), all };
        match self.ask(call, request).await? {
            ControlAnswer::Closed { closed: 0 } => {
                Err(ApiFailure::not_found(format!("handle {handle} is not open")))
            }
            answer => Ok(fields(answer)),
        }
    }
}
