//! The operations of the Queue service: one file a resource.
//!
//! ```text
//!   operations   the shape of each request, what a SAS must permit
//!   service      list queues
//!   queue        create, delete, metadata; policies: stored access policies
//!   messages     put, get, peek, clear; message: update, delete
//!   footprint    what an operation reads and writes, for explorations
//!   error        from cause to status and code
//! ```
//!
//! Each operation reads its parameters, calls the engine once, and spells the answer.

mod error;
mod footprint;
mod message;
pub(crate) mod messages;
pub mod operations;
mod policies;
#[allow(clippy::module_inception, reason = "the Queue service has queues")]
mod queue;
mod service;

use hyper::StatusCode;

use crate::http::frame::call::Call;
use crate::http::frame::refusal::Refusal;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::queue::service::QueueService;

/// The queues of the account.
fn queues<'a>(call: &Call<'a>) -> Result<&'a QueueService, Refusal> {
    call.service()
}

/// The queue that the path names.
fn queue_name<'a>(call: &Call<'a>) -> Result<&'a str, Refusal> {
    let missing = || Refusal::bad("InvalidUri", "The path does not name a queue.");
    call.request.address.container.as_deref().ok_or_else(missing)
}

/// An answer without a body.
fn no_content() -> Reply {
    Reply::new(StatusCode::NO_CONTENT)
}

/// The segments of the path behind the queue, decoded: `messages`, and the ID of a message.
fn segments(request: &Request) -> Vec<String> {
    let rest = request.address.rest.trim_end_matches('/');
    let decoded =
        |part: &str| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned();
    rest.split('/').map(decoded).collect()
}
