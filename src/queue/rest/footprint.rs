//! What operations on queues and messages read and write. All of them look at the time: messages
//! come back, and expire. A message is below its queue, beside other messages.

use super::segments;
use crate::http::frame::footprint::container;
use crate::http::request::Request;
use crate::rules::footprint::{Footprint, Time};
use crate::rules::service::ServiceKind::Queue;

/// What operations on all messages of a queue touch.
pub(super) fn of_messages(changes: bool, request: &Request) -> Footprint {
    let queue = container(Queue, request);
    let found = if changes { Footprint::of([], [queue]) } else { Footprint::of([queue], []) };
    found.timed(Time::Reads)
}

pub(super) fn queue_read(request: &Request) -> Footprint {
    of_messages(false, request)
}

pub(super) fn queue_cleared(request: &Request) -> Footprint {
    of_messages(true, request)
}

pub(super) fn of_message(request: &Request) -> Footprint {
    let id = segments(request).get(1).cloned().unwrap_or_default();
    let message = container(Queue, request).below("message").below(id);
    Footprint::of([], [message]).timed(Time::Reads)
}
