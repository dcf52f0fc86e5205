//! The requests that wait for a byte-range lock on one file.
//!
//! No thread blocks here: a request leaves a callback, which is called once with the answer, on the
//! thread that makes the change, after the file's lock is released. A caller that wants to block
//! waits on a channel of its own, with a bound.

use std::collections::HashMap;
use std::fmt;

use crate::file::rules::Denial;
use crate::file::rules::ranges::Ticket;

/// Called once with the answer.
pub type Completion = Box<dyn FnOnce(Result<(), Denial>) + Send>;

/// The waiters of one file. Empty, it costs a pointer.
#[derive(Default)]
#[expect(clippy::box_collection, reason = "each file in use has one, and almost all are empty")]
pub struct LockWaiters(Option<Box<HashMap<Ticket, Completion>>>);

impl LockWaiters {
    /// True if no request waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// `completion` is called when the lock request of that ticket has its answer.
    pub fn for_lock(&mut self, ticket: Ticket, completion: Completion) {
        self.0.get_or_insert_default().insert(ticket, completion);
    }

    /// The tickets of the waiting requests.
    pub fn tickets(&self) -> Vec<Ticket> {
        self.0.iter().flat_map(|waiters| waiters.keys().copied()).collect()
    }

    /// Removes the callback of a ticket.
    pub fn answered(&mut self, ticket: Ticket) -> Option<Completion> {
        let completion = self.0.as_mut()?.remove(&ticket);
        if self.0.as_ref().is_some_and(|waiters| waiters.is_empty()) {
            self.0 = None;
        }
        completion
    }
}

impl fmt::Debug for LockWaiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waiting({})", self.0.as_ref().map_or(0, |waiters| waiters.len()))
    }
}
