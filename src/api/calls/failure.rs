//! A call that was not carried out: its status and its JSON.
//!
//! Decides which status a refusal has: 404 where something is not there, 400 where the request
//! makes no sense, 409 where a rule refused, 507 where the disk is full.

use hyper::StatusCode;
use hyper::header::{ALLOW, CONNECTION, HeaderValue, WWW_AUTHENTICATE};
use serde::Serialize;
use serde_json::{Value, json};

use super::super::body::{AdminResponse, json as json_answer};
use crate::api::control::protocol::{HandleRow, RefusalDetail};
use crate::api::control::{ControlAnswer, FailureKind, RefusalKind};

/// Why a call was not carried out.
#[derive(Debug)]
pub struct ApiFailure {
    status: StatusCode,
    kind: String,
    message: String,
    holder: Option<HandleRow>,
    allow: Option<String>,
    close: bool,
}

impl ApiFailure {
    /// A failure of that kind.
    pub fn new(status: StatusCode, kind: &str, message: String) -> Self {
        let kind = kind.to_owned();
        Self { status, kind, message, holder: None, allow: None, close: false }
    }

    /// The call makes no sense.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message.into())
    }

    /// The object that the call names does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message.into())
    }

    /// The event that the call waits for did not happen in time.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "timeout", message.into())
    }

    /// A bound of the server is reached.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message.into())
    }

    /// The server has an error.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", message.into())
    }

    /// The path is there, the method is not.
    pub fn method_not_allowed(allowed: &str) -> Self {
        let message = format!("this path takes {allowed}");
        let mut failure = Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
        failure.allow = Some(allowed.to_owned());
        failure
    }

    /// The connection ends with the answer: what was not read of the request makes it useless.
    #[must_use]
    pub fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    /// The failure that an answer of `api/control` is; the answer itself if it is none.
    pub fn of(answer: ControlAnswer) -> Result<ControlAnswer, Self> {
        match answer {
            ControlAnswer::Refused(refused) => Err(Self::refused(refused)),
            ControlAnswer::Failed { kind, message } => {
                let status = match kind {
                    FailureKind::BadRequest => StatusCode::BAD_REQUEST,
                    FailureKind::NotFound => StatusCode::NOT_FOUND,
                    FailureKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
                    FailureKind::Full => StatusCode::INSUFFICIENT_STORAGE,
                    FailureKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
                };
                Err(Self::new(status, &name(kind), message))
            }
            answer => Ok(answer),
        }
    }

    fn refused(RefusalDetail { kind, message, holder }: RefusalDetail) -> Self {
        let status = match kind {
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::Invalid => StatusCode::BAD_REQUEST,
            _ => StatusCode::CONFLICT,
        };
        Self { holder, ..Self::new(status, &name(kind), message) }
    }

    /// Names what the call was about, unless a holder does.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        if self.holder.is_none() {
            // The path is named already where it cannot be one.
            let named = self.message.split_once(": ").filter(|(path, _)| what.ends_with(path));
            let why = named.map_or(self.message.as_str(), |(_, why)| why);
            self.message = format!("{what}: {why}");
        }
        self
    }

    /// As it goes out.
    pub fn answer(&self) -> AdminResponse {
        let mut error = json!({ "kind": self.kind, "message": self.message });
        if let Some(holder) = &self.holder {
            error["holder"] = json!(holder);
        }
        let mut answer = json_answer(self.status, &json!({ "error": error }));
        let headers = answer.headers_mut();
        if let Some(Ok(allow)) = self.allow.as_deref().map(HeaderValue::from_str) {
            headers.insert(ALLOW, allow);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

/// A kind by the name that it has in JSON.
fn name(kind: impl Serialize) -> String {
    match serde_json::to_value(kind) {
        Ok(Value::String(name)) => name,
        other => unreachable!("a kind is a text: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_path_once() {
        let about = |message: &str, what: &str| ApiFailure::bad(message).about(what).message;
        assert_eq!(about("there is no file", "file:docs/a"), "file:docs/a: there is no file");
        assert_eq!(about("../x: no dots: none", "../x"), "../x: no dots: none");
        assert_eq!(about("../x: no dots", "file:docs/../x"), "file:docs/../x: no dots");
    }
}
