//! A call that was not carried out: its status and its JSON.
//!
//! Decides which status a refusal has: 404 where something is not there, 400 where the request
//! makes no sense, 409 where a rule refused, 507 where the disk is full.

use hyper::StatusCode;
use hyper::header::{ALLOW, CONNECTION, HeaderValue, WWW_AUTHENTICATE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::body::{AdminResponse, json as json_answer};
use super::files::{HandleRow, handle_rows};
use crate::bench::StateError;
use crate::blob::rules::BlobDenial;
use crate::blob::service::BlobError;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::{FileServiceError, Share, ShareDenial};
use crate::journal::programs::{resolved, words};
use crate::queue::rules::QueueDenial;
use crate::queue::service::QueueError;
pub use crate::rules::RefusalKind;
use crate::rules::Rule;
use crate::table::rules::TableDenial;
use crate::table::service::TableError;

/// The header of an answer that a rule refused: with the kind alone, a name that a rule did not
/// find cannot be told from a share that is not served.
pub const REFUSED_HEADER: &str = "x-latchfs-refused";

/// The body of an answer to a call that was not carried out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorAnswer {
    pub error: ErrorDetail,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetail {
    /// A rule as in docs/events.md, or `bad_request`, `unauthorized`, `forbidden`, `not_found`,
    /// `method_not_allowed`, `too_large`, timeout, failed, busy, full
    pub kind: String,
    pub message: String,
    /// The open in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Box<HandleRow>>,
}

/// Why a call was not carried out.
#[derive(Debug)]
pub struct ApiFailure {
    status: StatusCode,
    detail: ErrorDetail,
    refused: bool,
    allow: Option<String>,
    close: bool,
}

/// A refusal by a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalDetail {
    /// Which kind of rule.
    pub kind: RefusalKind,
    /// In words, naming the holder.
    pub message: String,
    /// The open in the way.
    pub holder: Option<HandleRow>,
}

impl RefusalDetail {
    /// A refusal with the holder's program in its text, and the holder's row if the open still
    /// exists.
    pub fn of_file(account: &str, share: &Share, path: &SharePath, denial: &Denial) -> Self {
        let mut holder = None;
        if let Some(in_the_way) = denial.holder() {
            // Only what is below a directory takes a look at all files in use.
            let below = matches!(denial, Denial::OpenBelow(_));
            let opens = share.all_handles(path, below).unwrap_or_default();
            let open = opens.iter().find(|open| open.id == in_the_way.handle);
            holder = handle_rows(account, share.name(), open, share.now()).pop();
        }
        let owner = denial.holder().map(|holder| resolved(&holder.owner));
        let message = words(&denial.to_string(), denial.holder(), owner.as_ref());
        Self { kind: RefusalKind::of(denial), message, holder }
    }
}

/// A text says what is wrong with the call.
impl From<String> for ApiFailure {
    fn from(message: String) -> Self {
        Self::bad(message)
    }
}

impl From<BlobError> for ApiFailure {
    fn from(error: BlobError) -> Self {
        let kind = error.denial().map(RefusalKind::of_blob);
        Self::rule_or_failed(kind, &error)
    }
}

impl From<QueueError> for ApiFailure {
    fn from(error: QueueError) -> Self {
        let kind = error.denial().map(RefusalKind::of_queue);
        Self::rule_or_failed(kind, &error)
    }
}

impl From<TableError> for ApiFailure {
    fn from(error: TableError) -> Self {
        let kind = error.denial().map(RefusalKind::of_table);
        Self::rule_or_failed(kind, &error)
    }
}

impl From<FileServiceError> for ApiFailure {
    fn from(error: FileServiceError) -> Self {
        match error {
            FileServiceError::Denied(denial) => {
                Self::rule(RefusalKind::of_share(&denial), denial.to_string())
            }
            error => Self::failed(error.to_string()),
        }
    }
}

impl From<StateError> for ApiFailure {
    fn from(error: StateError) -> Self {
        let kind = match error {
            StateError::NotFound(_) => RefusalKind::NotFound,
            StateError::Name(_) => RefusalKind::Invalid,
            StateError::ExistingDirectory | StateError::NoAccount { .. } => RefusalKind::Denied,
            StateError::TooMany => return Self::busy(error.to_string()),
            error if error.is_full() => {
                let (status, message) = (StatusCode::INSUFFICIENT_STORAGE, error.to_string());
                return Self::new(status, "full", message);
            }
            error => return Self::failed(error.to_string()),
        };
        Self::rule(kind, error.to_string())
    }
}

impl ApiFailure {
    /// A failure of that kind.
    pub fn new(status: StatusCode, kind: &str, message: String) -> Self {
        let detail = ErrorDetail { kind: kind.to_owned(), message, holder: None };
        Self { status, detail, refused: false, allow: None, close: false }
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

    /// The system refused, or the server has an error.
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

    pub fn refused(RefusalDetail { kind, message, holder }: RefusalDetail) -> Self {
        let status = match kind {
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::Invalid => StatusCode::BAD_REQUEST,
            _ => StatusCode::CONFLICT,
        };
        let detail = ErrorDetail { kind: name(kind), message, holder: holder.map(Box::new) };
        Self { status, detail, refused: true, allow: None, close: false }
    }

    /// A rule refused, and nobody is in the way.
    pub fn rule(kind: RefusalKind, message: String) -> Self {
        Self::refused(RefusalDetail { kind, message, holder: None })
    }

    fn rule_or_failed(kind: Option<RefusalKind>, error: &dyn std::fmt::Display) -> Self {
        match kind {
            Some(kind) => Self::rule(kind, error.to_string()),
            None => Self::failed(error.to_string()),
        }
    }

    pub fn message(&self) -> &str {
        &self.detail.message
    }

    /// The error as the last line of a stream whose head is out already.
    pub fn line(&self) -> String {
        json!(ErrorAnswer { error: self.detail.clone() }).to_string() + "\n"
    }

    /// Names what the call was about, unless a holder does.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        if self.detail.holder.is_none() {
            // The path is named already where it cannot be one.
            let message = &self.detail.message;
            let named = message.split_once(": ").filter(|(path, _)| what.ends_with(path));
            let why = named.map_or(message.as_str(), |(_, why)| why);
            self.detail.message = format!("{what}: {why}");
        }
        self
    }

    /// As it goes out.
    pub fn answer(&self) -> AdminResponse {
        let error = ErrorAnswer { error: self.detail.clone() };
        let mut answer = json_answer(self.status, &json!(error));
        let headers = answer.headers_mut();
        if self.refused {
            headers.insert(REFUSED_HEADER, HeaderValue::from_static("true"));
        }
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

impl RefusalKind {
    /// The kind of a refusal that concerns a share as a whole.
    pub fn of_share(denial: &ShareDenial) -> Self {
        match denial {
            ShareDenial::ShareNotFound
            | ShareDenial::ShareSnapshotNotFound
            | ShareDenial::PreviousSnapshotNotFound => Self::NotFound,
            ShareDenial::ShareAlreadyExists => Self::Exists,
            ShareDenial::ShareBeingDeleted => Rule::DeletePending.into(),
            ShareDenial::DeleteShareWhenSnapshotLeased
            | ShareDenial::ShareSnapshotInProgress
            | ShareDenial::Lease(_) => Rule::Lease.into(),
            ShareDenial::Name(_)
            | ShareDenial::Metadata(_)
            | ShareDenial::OutOfRangeQuota(_)
            | ShareDenial::UnsupportedProtocol(_)
            | ShareDenial::UnknownAccessTier(_)
            | ShareDenial::Policy(_)
            | ShareDenial::FileInvalidPermission(_)
            | ShareDenial::FilePermissionTooLarge
            | ShareDenial::FileInvalidPermissionKey
            | ShareDenial::PermissionFormatUnsupported
            | ShareDenial::PreviousSnapshotNotOlder
            | ShareDenial::InvalidContinuationToken => Self::Invalid,
            ShareDenial::ShareHasSnapshots
            | ShareDenial::ShareSnapshotCountExceeded
            | ShareDenial::ShareSnapshotOperationNotSupported
            | ShareDenial::SnapshotCancelled
            | ShareDenial::OneDirectoryOnly => Self::Denied,
        }
    }

    /// The kind of a refusal by the Blob service.
    pub fn of_blob(denial: &BlobDenial) -> Self {
        match denial {
            BlobDenial::BlobNotFound | BlobDenial::ContainerNotFound => Self::NotFound,
            BlobDenial::Lease(_) => Rule::Lease.into(),
            BlobDenial::PendingCopyOperation => Rule::CopyPending.into(),
            _ => Self::Denied,
        }
    }

    /// The kind of a refusal by the Queue service.
    pub fn of_queue(denial: &QueueDenial) -> Self {
        match denial {
            QueueDenial::QueueNotFound(_) | QueueDenial::MessageNotFound(_) => Self::NotFound,
            _ => Self::Invalid,
        }
    }

    /// The kind of a refusal by the Table service.
    pub fn of_table(denial: &TableDenial) -> Self {
        match denial {
            TableDenial::TableNotFound | TableDenial::ResourceNotFound => Self::NotFound,
            _ => Self::Invalid,
        }
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
        let about = |message: &str, what: &str| ApiFailure::bad(message).about(what).detail.message;
        assert_eq!(about("there is no file", "file:docs/a"), "file:docs/a: there is no file");
        assert_eq!(about("../x: no dots: none", "../x"), "../x: no dots: none");
        assert_eq!(about("../x: no dots", "file:docs/../x"), "file:docs/../x: no dots");
    }
}
