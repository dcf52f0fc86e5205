//! Calls that show something, or mend it: status, handles, why, history, leases, pending files.

use serde::Deserialize;
use serde_json::Value;

use super::call::Call;
use super::failure::Failure;
use super::routes::{Kind, Param};
use super::{Api, fields};
use crate::control::address::PrintedFile;
use crate::control::{Answer, Request};

/// An object.
pub const OBJECT: Param = Param {
    name: "object",
    kind: Kind::Text,
    required: false,
    about: "file:SHARE/PATH or SHARE:/PATH, blob:CONTAINER/NAME, queue:NAME/ID or \
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
pub fn plain(_: &Call, answer: Answer) -> Value {
    fields(answer)
}

pub fn status(_: &Call) -> Result<Request, Failure> {
    Ok(Request::Status {})
}

/// The status without the token: an answer of the API is shown where a secret should not be.
pub fn told_status(_: &Call, answer: Answer) -> Value {
    let mut value = fields(answer);
    if let Value::Object(object) = &mut value {
        object.remove("admin_token");
    }
    value
}

pub fn connection(_: &Call) -> Result<Request, Failure> {
    Ok(Request::Connection {})
}

pub fn handles(call: &Call) -> Result<Request, Failure> {
    let (share_name, path) = (call.text("share"), call.text("path"));
    Ok(Request::Handles { share_name, path, recursive: call.flag("recursive") })
}

pub fn locks(call: &Call) -> Result<Request, Failure> {
    Ok(Request::Locks { share_name: call.text("share"), path: call.text("path") })
}

pub fn pending(_: &Call) -> Result<Request, Failure> {
    Ok(Request::Pending {})
}

pub fn leases(_: &Call) -> Result<Request, Failure> {
    Ok(Request::Leases {})
}

pub fn messages(call: &Call) -> Result<Request, Failure> {
    Ok(Request::Messages { queue: call.text("queue") })
}

pub fn why(call: &Call) -> Result<Request, Failure> {
    let object = call.text("object").unwrap_or_default();
    Ok(match file_of(&object) {
        Some((share, path)) => Request::Why { share_name: Some(share), path },
        None => Request::WhyObject { object },
    })
}

pub fn history(call: &Call) -> Result<Request, Failure> {
    Ok(Request::History { object: call.text("object") })
}

pub fn undelete(call: &Call) -> Result<Request, Failure> {
    let FileAt { share, path } = call.body()?;
    Ok(Request::Undelete { share_name: share, path })
}

pub fn break_lease(call: &Call) -> Result<Request, Failure> {
    let LeaseBreak { object, period } = call.body()?;
    Ok(match file_of(&object) {
        Some((share, path)) => Request::BreakLease { share_name: Some(share), path, period },
        None => Request::BreakObjectLease { object, period },
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
    pub(super) async fn close_handle(&self, call: &Call) -> Result<Value, Failure> {
        let handle = call.id("handle")?;
        let (share_name, all) = (call.text("share"), false);
        let request = Request::CloseHandle { share_name, handle: Some(handle), all };
        match self.ask(call, request).await? {
            Answer::Closed { closed: 0 } => {
                Err(Failure::not_found(format!("handle {handle} is not open")))
            }
            answer => Ok(fields(answer)),
        }
    }
}
