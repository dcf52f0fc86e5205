//! An answer before it is HTTP: status, headers, body.

use std::cell::RefCell;
use std::fmt::{Display, Write as _};

use http_body_util::combinators::BoxBody;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::xml::Xml;

/// Room for the headers of most answers: a table that grows is filled anew each time.
const HEADERS: usize = 24;

thread_local! {
    /// Where values are spelled before a header takes its copy.
    static SPELLING: RefCell<String> = const { RefCell::new(String::new()) };
}

#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: ReplyBody,
    /// Headers whose names are not in lower case.
    pub spelled: Vec<String>,
}

/// The body of an answer.
#[derive(Debug)]
pub enum ReplyBody {
    Bytes(Bytes),
    /// Bytes that are read while they are sent, and how many there are.
    Stream(u64, BoxBody<Bytes, std::io::Error>),
    /// Nothing, though Content-Length says what a GET would send.
    HeadOf(u64),
}

impl Reply {
    pub fn new(status: StatusCode) -> Self {
        let (headers, body) = (HeaderMap::with_capacity(HEADERS), ReplyBody::Bytes(Bytes::new()));
        Self { status, headers, body, spelled: Vec::new() }
    }

    pub fn ok() -> Self {
        Self::new(StatusCode::OK)
    }

    pub fn created() -> Self {
        Self::new(StatusCode::CREATED)
    }

    pub fn accepted() -> Self {
        Self::new(StatusCode::ACCEPTED)
    }

    /// With a header. A value that no header can carry is left out: what a file has been given
    /// from beside must not make it unreadable.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Display) -> Self {
        self.set(name, value);
        self
    }

    /// With a header, if there is a value for it.
    #[must_use]
    pub fn maybe(self, name: &'static str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.header(name, value),
            None => self,
        }
    }

    /// Sets a header. Its name is in lower case.
    pub fn set(&mut self, name: &'static str, value: impl Display) {
        self.insert(Some(HeaderName::from_static(name)), value);
    }

    /// Sets a header whose name is not known to the program.
    pub fn set_named(&mut self, name: &str, value: impl Display) {
        self.insert(HeaderName::from_bytes(name.as_bytes()).ok(), value);
    }

    fn insert(&mut self, name: Option<HeaderName>, value: impl Display) {
        let value = SPELLING.with_borrow_mut(|text| {
            text.clear();
            write!(text, "{value}")
                .ok()
                .and_then(|()| HeaderValue::from_bytes(text.as_bytes()).ok())
        });
        match (name, value) {
            (Some(name), Some(value)) => {
                self.headers.insert(name, value);
            }
            _ => log::warn!("a value of a file cannot be sent as a header and is left out"),
        }
    }

    #[must_use]
    pub fn xml(self, xml: Xml) -> Self {
        self.bytes("application/xml", xml.finish())
    }

    #[must_use]
    pub fn bytes(mut self, content_type: &str, bytes: impl Into<Bytes>) -> Self {
        self.body = ReplyBody::Bytes(bytes.into());
        self.header("content-type", content_type)
    }
}
