//! A refusal as it goes over the wire: status, code, message.
//!
//! Decides the form of an error answer (LOCKING section 8): XML body, `x-ms-error-code`, and to a
//! HEAD neither body nor Content-Type. Which status and code a cause has is [`super::error`]'s
//! table.

use std::borrow::Cow;

use hyper::StatusCode;

use super::reply::Reply;
use super::xml::Xml;

/// Elements of a body that are headers too: clients look there for what a source said of itself
/// (FILEREST 10.16).
const IN_HEADERS: [(&str, &str); 2] = [
    ("CopySourceStatusCode", "x-ms-copy-source-status-code"),
    ("CopySourceErrorCode", "x-ms-copy-source-error-code"),
];

/// Which names the codes have where sources differ (LOCKING C1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ErrorNames {
    /// The article's: `SMBDeletePending`.
    #[default]
    Article,
    /// Today's service and SDKs: `DeletePending`.
    Service,
}

/// A code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// The same under either naming.
    Is(&'static str),
    /// Marked for deletion.
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

/// Why a request was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The status of the answer.
    pub status: StatusCode,
    /// Its code.
    pub code: Code,
    /// What was refused, who holds it, what to do.
    pub message: Cow<'static, str>,
    /// Further elements of the body.
    pub details: Vec<(&'static str, String)>,
    /// For `WWW-Authenticate`: how to come back with a token.
    pub challenge: Option<&'static str>,
    /// For `Content-Range`: how long the file is that lacks the bytes asked for.
    pub size: Option<u64>,
    /// What was not read of the request makes the connection useless.
    pub close: bool,
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
        Self { status, code, message, details, challenge: None, size: None, close: false }
    }

    /// 400 with that code.
    pub fn bad(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// A header whose value makes no sense.
    pub fn header(name: &str, value: &str, why: &str) -> Self {
        let message = format!("The value of header {name} is invalid: {why}.");
        Self::bad("InvalidHeaderValue", message)
            .with("HeaderName", name.to_owned())
            .with("HeaderValue", value.to_owned())
    }

    /// A header that has to be there.
    pub fn missing_header(name: &str) -> Self {
        let message = format!("The header {name} is required and was not given.");
        Self::bad("MissingRequiredHeader", message).with("HeaderName", name.to_owned())
    }

    /// A query parameter whose value makes no sense.
    pub fn query(name: &str, value: &str, why: &str) -> Self {
        let message = format!("The value of query parameter {name} is invalid: {why}.");
        Self::bad("InvalidQueryParameterValue", message)
            .with("QueryParameterName", name.to_owned())
            .with("QueryParameterValue", value.to_owned())
    }

    /// Known, and not to be had here: 501, which clients do not try again (FILEREST 10.16).
    pub fn not_implemented(what: &str) -> Self {
        let message = format!("{what} is not implemented by this server.");
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)
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

    /// The answer. `stamp` is what the message ends with: request ID and time.
    pub fn reply(&self, names: ErrorNames, head: bool, stamp: &str) -> Reply {
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
        if head {
            return reply;
        }
        let mut xml = Xml::new();
        xml.open("Error");
        xml.text("Code", code);
        xml.text("Message", &format!("{}\n{stamp}", self.message));
        for (name, value) in &self.details {
            xml.text(name, value);
        }
        xml.close("Error");
        reply.xml(xml)
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
}
