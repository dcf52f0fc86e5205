//! The operations of the Queue service: one file a resource.
//!
//! ```text
//!   operations   the shape of each request, what a SAS must permit, what it reads and writes
//!   queues       list, create, delete, metadata, stored access policies
//!   messages     put, get, peek, clear, update, delete
//!   error        from cause to status and code
//! ```
//!
//! Each operation reads its parameters, calls the engine once, and spells the answer.

mod error;
pub(crate) mod messages;
pub mod operations;
mod queues;

use std::ops::Deref;

use hyper::StatusCode;

use crate::http::frame::call::Call;
use crate::http::frame::refusal::Refusal;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::queue::service::QueueService;

/// A request to the Queue service that was authorised.
struct QueueCall<'a>(&'a Call<'a>);

impl<'a> Deref for QueueCall<'a> {
    type Target = Call<'a>;

    fn deref(&self) -> &Call<'a> {
        self.0
    }
}

impl<'a> QueueCall<'a> {
    fn service(&self) -> Result<&'a QueueService, Refusal> {
        self.0.service()
    }

    /// The queue that the path names.
    fn queue(&self) -> Result<&'a str, Refusal> {
        let missing = || Refusal::bad("InvalidUri", "The path does not name a queue.");
        self.0.request.address.container.as_deref().ok_or_else(missing)
    }
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
