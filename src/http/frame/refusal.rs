//! A refusal as it goes over the wire: status, code, message.
//!
//! Decides the form of an error answer: a body in XML or JSON, `x-ms-error-code`, and to a HEAD
//! neither body nor Content-Type; the service's own sentence first, the cause in brackets. Which
//! status and code a cause has is decided in the error table of its service, and here for causes
//! that every service has: the database fails, metadata are not allowed.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

use hyper::StatusCode;
use serde_json::json;

use super::service::ErrorFormat;
use super::wording;
use crate::db::DbError;
use crate::http::reply::Reply;
use crate::http::xml::Xml;
use crate::rules::conflict::Conflict;
use crate::rules::lease::{LeaseDenial, LeaseOn};
use crate::rules::{Cause, MetadataError, NameError};

/// Elements of a body that are headers too: clients look there for what a source said of itself,
/// and a 304 has no body.
const IN_HEADERS: [(&str, &str); 4] = [
    ("ETag", "etag"),
    ("LastModified", "last-modified"),
    ("CopySourceStatusCode", "x-ms-copy-source-status-code"),
    ("CopySourceErrorCode", "x-ms-copy-source-error-code"),
];

/// The content type of errors as JSON.
const JSON: &str = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
/// The namespace of errors of the Table service as XML.
const ODATA_METADATA: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata";

/// Which names the codes have where the article and the service differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum ErrorNames {
    /// `SMBDeletePending`
    #[default]
    Article,
    /// `DeletePending`, as in the SDKs
    Service,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// A code that has this name under either naming.
    Is(&'static str),
    DeletePending,
}

impl Code {
    /// As it is spelled on the wire.
    pub const fn spelled(self, names: ErrorNames) -> &'static str {
        match (self, names) {
            (Self::Is(name), _) => name,
            (Self::DeletePending, ErrorNames::Article) => "SMBDeletePending",
            (Self::DeletePending, ErrorNames::Service) => "DeletePending",
        }
    }
}

/// An object of a service, as the command line names it, without the service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectName(pub String);

/// The rule of a service that refused.
#[derive(Clone, Debug)]
pub enum Denied {
    /// A value that only the service knows, which makes the cause of it.
    By(Arc<dyn Any + Send + Sync>),
    /// What the journal keeps of the rule, with the holder.
    Because(Cause),
}

/// Why a request was not carried out.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The status of the answer.
    pub status: StatusCode,
    pub code: Code,
    /// The service's sentence, then in brackets the cause: who holds it, what to do.
    pub message: Cow<'static, str>,
    /// Further elements of the body.
    pub details: Vec<(&'static str, String)>,
    /// For `WWW-Authenticate`: how to come back with a token.
    pub challenge: Option<&'static str>,
    /// For `Content-Range`: how long the file is that lacks the bytes asked for.
    pub size: Option<u64>,
    /// The connection must be closed, because a part of the request was not read.
    pub close: bool,
    /// The message repeats parts of the request and is for its sender alone. The stream of events
    /// is told the service's sentence.
    pub sender_only: bool,
    /// The rule that refused, for the journal.
    pub denied: Option<Box<Denied>>,
    /// The act of another client that refused the request; the refusal is noted in the log of
    /// events.
    pub conflict: Option<Conflict>,
    /// The object that the refusal is about, where only the body of the request names it.
    pub object: Option<Box<ObjectName>>,
}

impl Refusal {
    /// A refusal with that code.
    pub fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let code = Code::Is(code);
        let (message, details) = (message.into(), Vec::new());
        let (challenge, size, conflict, denied, object) = (None, None, None, None, None);
        let (close, sender_only) = (false, false);
        Self {
            status,
            code,
            message,
            details,
            challenge,
            size,
            close,
            sender_only,
            denied,
            conflict,
            object,
        }
    }

    /// This refusal, noted as a conflict with another client.
    #[must_use]
    pub fn by_conflict(self, conflict: Option<Conflict>) -> Self {
        Self { conflict, ..self }
    }

    /// This refusal, about an object that only the body of the request names.
    #[must_use]
    pub fn about(self, object: impl Into<String>) -> Self {
        Self { object: Some(Box::new(ObjectName(object.into()))), ..self }
    }

    /// 400 with that code.
    pub fn bad(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// A refusal in the service's words for that code, with the cause in brackets.
    pub fn explained(status: StatusCode, code: &'static str, why: impl Display) -> Self {
        let why = why.to_string();
        let message: Cow<'static, str> = match wording::of(code) {
            Some(sentence) if why.is_empty() || why == sentence => sentence.into(),
            Some(sentence) => format!("{sentence} [latchfs: {}]", why.trim_end_matches('.')).into(),
            None => why.into(),
        };
        Self::new(status, code, message)
    }

    /// 400 in the service's words for that code, with the cause in brackets.
    pub fn bad_because(code: &'static str, why: impl Display) -> Self {
        Self::explained(StatusCode::BAD_REQUEST, code, why)
    }

    /// 503: the same request may succeed later.
    pub fn busy(why: impl Display) -> Self {
        Self::explained(StatusCode::SERVICE_UNAVAILABLE, "ServerBusy", why)
    }

    /// 500: an error of the server's own, which is also logged.
    pub fn internal(why: impl Display) -> Self {
        log::error!("a request failed: {why}");
        Self::explained(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", why)
    }

    /// A header whose value makes no sense.
    pub fn header(name: &str, value: &str, why: &str) -> Self {
        Self::bad_because("InvalidHeaderValue", format_args!("{name}: {why}"))
            .with("HeaderName", name.to_owned())
            .with("HeaderValue", value.to_owned())
    }

    /// A header that has to be there.
    pub fn missing_header(name: &str) -> Self {
        Self::bad_because("MissingRequiredHeader", format_args!("{name} is required"))
            .with("HeaderName", name.to_owned())
    }

    /// A query parameter whose value makes no sense.
    pub fn query(name: &str, value: &str, why: &str) -> Self {
        Self::bad_because("InvalidQueryParameterValue", format_args!("{name}: {why}"))
            .with("QueryParameterName", name.to_owned())
            .with("QueryParameterValue", value.to_owned())
            .with("Reason", why.to_owned())
    }

    /// A known operation that this server does not have: 501, which clients do not try again.
    pub fn not_implemented(what: &str) -> Self {
        let why = format_args!("{what} is not implemented by this server");
        Self::explained(StatusCode::NOT_IMPLEMENTED, "NotImplemented", why)
    }

    /// With a further element in the body.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: String) -> Self {
        self.details.push((name, value));
        self
    }

    /// The connection ends with the answer.
    #[must_use]
    pub fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    /// The body as JSON, on one line.
    pub fn json(&self, names: ErrorNames, stamp: &str) -> String {
        let message = format!("{}\n{stamp}", self.message);
        let message = json!({ "lang": "en-US", "value": message });
        let code = self.code.spelled(names);
        json!({ "odata.error": { "code": code, "message": message } }).to_string()
    }

    /// The answer. `stamp` is what the message ends with: request ID and time.
    pub fn reply(&self, format: ErrorFormat, names: ErrorNames, head: bool, stamp: &str) -> Reply {
        let code = self.code.spelled(names);
        let mut reply = Reply::new(self.status).header("x-ms-error-code", code);
        if let Some(challenge) = self.challenge {
            reply = reply.header("www-authenticate", challenge);
        }
        if let Some(size) = self.size {
            reply = reply.header("content-range", format!("bytes */{size}"));
        }
        for (name, value) in &self.details {
            if let Some((_, header)) = IN_HEADERS.iter().find(|(detail, _)| detail == name) {
                reply = reply.header(header, value);
            }
        }
        if self.close {
            reply = reply.header("connection", "close");
        }
        if head || self.status == StatusCode::NOT_MODIFIED {
            return reply;
        }
        let message = format!("{}\n{stamp}", self.message);
        let mut xml = Xml::default();
        // A client that does not take JSON is not answered with it.
        let takes_json = self.status != StatusCode::UNSUPPORTED_MEDIA_TYPE;
        match format {
            ErrorFormat::Json if takes_json => {
                return reply.bytes(JSON, self.json(names, stamp));
            }
            ErrorFormat::Json | ErrorFormat::ODataXml => {
                xml.open_with("m:error", &[("xmlns:m", ODATA_METADATA)]);
                xml.text("m:code", code);
                xml.open_with("m:message", &[("xml:lang", "en-US")]);
                xml.content(&message);
                xml.close("m:message");
                xml.close("m:error");
                return reply.xml(xml);
            }
            ErrorFormat::Xml => {}
        }
        xml.open("Error");
        xml.text("Code", code);
        xml.text("Message", &message);
        for (name, value) in &self.details {
            xml.text(name, value);
        }
        xml.close("Error");
        reply.xml(xml)
    }
}

/// The database could not. A client may try again only where waiting can help.
impl From<&DbError> for Refusal {
    fn from(error: &DbError) -> Self {
        match error {
            DbError::Busy(_)
            | DbError::Closed
            | DbError::TooManyFiles { .. }
            | DbError::Gone { .. } => Self::busy(error),
            DbError::Full { .. } => {
                Self::explained(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", error)
            }
            _ => Self::internal(error),
        }
    }
}

impl From<MetadataError> for Refusal {
    fn from(error: MetadataError) -> Self {
        Self::bad_because(metadata_code(&error), error)
    }
}

impl From<NameError> for Refusal {
    fn from(error: NameError) -> Self {
        Self::bad(name_code(&error), error.message())
    }
}

/// The code of a name that is not allowed, which is 400 in every service.
pub fn name_code(error: &NameError) -> &'static str {
    match error {
        NameError::Length { .. } => "OutOfRangeInput",
        NameError::Character { .. } | NameError::Form { .. } => "InvalidResourceName",
    }
}

/// The code of metadata that are not allowed, which are 400 in every service.
pub fn metadata_code(error: &MetadataError) -> &'static str {
    match error {
        MetadataError::EmptyName => "EmptyMetadataKey",
        MetadataError::InvalidName(_) | MetadataError::InvalidValue(_) => "InvalidMetadata",
        MetadataError::TooLarge(_) => "MetadataTooLarge",
    }
}

/// The status and code of a refusal by a lease: a failed condition is 412, an action that the lease
/// does not admit 409. The codes of shares are those of containers.
pub const fn lease_code(denial: LeaseDenial) -> (StatusCode, &'static str) {
    use LeaseDenial as L;
    const BAD: StatusCode = StatusCode::BAD_REQUEST;
    const CONFLICT: StatusCode = StatusCode::CONFLICT;
    const FAILED: StatusCode = StatusCode::PRECONDITION_FAILED;
    match denial {
        L::LeaseIdMissing(_) => (FAILED, "LeaseIdMissing"),
        L::LeaseIdMismatchWithOperation(on) => match on {
            LeaseOn::File => (FAILED, "LeaseIdMismatchWithFileOperation"),
            LeaseOn::Blob => (FAILED, "LeaseIdMismatchWithBlobOperation"),
            LeaseOn::Share | LeaseOn::Container => {
                (FAILED, "LeaseIdMismatchWithContainerOperation")
            }
        },
        L::LeaseNotPresentWithOperation(on) => match on {
            LeaseOn::File => (FAILED, "LeaseNotPresentWithFileOperation"),
            LeaseOn::Blob => (FAILED, "LeaseNotPresentWithBlobOperation"),
            LeaseOn::Share | LeaseOn::Container => {
                (FAILED, "LeaseNotPresentWithContainerOperation")
            }
        },
        L::LeaseLost(_) => (FAILED, "LeaseLost"),
        L::InfiniteLeaseDurationRequired => (FAILED, "InfiniteLeaseDurationRequired"),
        L::LeaseAlreadyPresent => (CONFLICT, "LeaseAlreadyPresent"),
        L::LeaseIdMismatchWithLeaseOperation(_) => (CONFLICT, "LeaseIdMismatchWithLeaseOperation"),
        L::LeaseNotPresentWithLeaseOperation(_) => (CONFLICT, "LeaseNotPresentWithLeaseOperation"),
        L::LeaseIsBreakingAndCannotBeAcquired => (CONFLICT, "LeaseIsBreakingAndCannotBeAcquired"),
        L::LeaseIsBreakingAndCannotBeChanged => (CONFLICT, "LeaseIsBreakingAndCannotBeChanged"),
        L::LeaseIsBrokenAndCannotBeRenewed => (CONFLICT, "LeaseIsBrokenAndCannotBeRenewed"),
        L::InvalidDuration(_) | L::InvalidBreakPeriod => (BAD, "InvalidHeaderValue"),
        L::MissingDuration => (BAD, "MissingRequiredHeader"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delete_pending_has_two_spellings_and_one_switch() {
        assert_eq!(Code::DeletePending.spelled(ErrorNames::Article), "SMBDeletePending");
        assert_eq!(Code::DeletePending.spelled(ErrorNames::Service), "DeletePending");
        assert_eq!(Code::Is("X").spelled(ErrorNames::Service), "X");
    }

    #[test]
    fn a_refusal_starts_with_the_sentence_of_the_service_and_ends_with_the_cause() {
        let refusal = Refusal::header("x-ms-range", "abc", "it is not a range");
        assert_eq!(
            refusal.message,
            "The value for one of the HTTP headers is not in the correct format. [latchfs: \
             x-ms-range: it is not a range]"
        );
        let sentence = "The specified share does not exist.";
        let refusal = Refusal::explained(StatusCode::NOT_FOUND, "ShareNotFound", sentence);
        assert_eq!(refusal.message, sentence, "a cause that says the same is not said twice");
        assert_eq!(Refusal::bad_because("NoSuchCode", "why").message, "why");
    }

    #[test]
    fn a_busy_database_may_be_asked_again_and_a_full_or_damaged_one_not() {
        let status = |error: &DbError| Refusal::from(error).status;
        assert_eq!(status(&DbError::Busy("waiting".into())), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status(&DbError::Closed), StatusCode::SERVICE_UNAVAILABLE);
        let no_descriptor = DbError::TooManyFiles { file: "db".into() };
        assert_eq!(status(&no_descriptor), StatusCode::SERVICE_UNAVAILABLE);
        let gone = DbError::Gone { file: "db".into() };
        assert_eq!(status(&gone), StatusCode::SERVICE_UNAVAILABLE);
        let full = DbError::Full { file: "db".into() };
        assert_eq!(status(&full), StatusCode::INSUFFICIENT_STORAGE);
        assert_eq!(status(&DbError::Io("no".into())), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
