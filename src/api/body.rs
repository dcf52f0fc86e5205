//! Answers of the admin address: JSON, text, and bodies that go on.
//!
//! Decides what every answer carries: no answer is kept by a cache, and none is taken for another
//! type than it says.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;

/// An answer as it goes out.
pub type AdminResponse = Response<BoxBody<Bytes, Infallible>>;

/// The type of plain text.
pub const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// An answer of these bytes.
pub fn bytes(status: StatusCode, kind: &'static str, bytes: impl Into<Bytes>) -> AdminResponse {
    finished(status, kind, Full::new(bytes.into()).boxed())
}

/// An answer of text.
pub fn text(status: StatusCode, text: impl Into<Bytes>) -> AdminResponse {
    bytes(status, PLAIN, text)
}

/// An answer of JSON, on one line.
pub fn json(status: StatusCode, value: &Value) -> AdminResponse {
    bytes(status, JSON, format!("{value}\n"))
}

/// An answer whose body is what comes through the channel, until the channel is closed. `guard` is
/// dropped when the body has ended or the client is gone.
pub fn stream(
    status: StatusCode,
    kind: &'static str,
    receiver: mpsc::Receiver<Bytes>,
    guard: impl Send + Sync + 'static,
) -> AdminResponse {
    finished(status, kind, Streamed { receiver, _guard: Box::new(guard) }.boxed())
}

/// A streamed body with the content type of JSON.
pub fn json_stream(
    status: StatusCode,
    receiver: mpsc::Receiver<Bytes>,
    guard: impl Send + Sync + 'static,
) -> AdminResponse {
    stream(status, JSON, receiver, guard)
}

fn finished(
    status: StatusCode,
    kind: &'static str,
    body: BoxBody<Bytes, Infallible>,
) -> AdminResponse {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// A body that goes on.
struct Streamed {
    receiver: mpsc::Receiver<Bytes>,
    _guard: Box<dyn Send + Sync>,
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.receiver.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
