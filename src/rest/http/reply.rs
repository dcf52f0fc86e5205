//! An answer before it is HTTP: status, headers, body.

use std::fmt::Display;

use http_body_util::combinators::BoxBody;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::xml::Xml;

/// An answer.
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
        let (headers, body) = (HeaderMap::new(), ReplyBody::Bytes(Bytes::new()));
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
    pub fn header(mut self, name: &str, value: impl Display) -> Self {
        self.set(name, value);
        self
    }

    /// With a header, if there is a value for it.
    #[must_use]
    pub fn maybe(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.header(name, value),
            None => self,
        }
    }

    pub fn set(&mut self, name: &str, value: impl Display) {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_bytes(value.to_string().as_bytes());
        match (name, value) {
            (Ok(name), Ok(value)) => {
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
