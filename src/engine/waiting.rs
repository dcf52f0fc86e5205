//! Those who wait on one file: for a byte-range lock, or for any change.
//!
//! Nobody blocks in here: a waiter leaves a function that is called once, from whichever thread
//! brings the answer, after the file's lock is let go. Callers that want to block do so on a
//! channel of their own, with a bound.

use std::collections::HashMap;
use std::fmt;

use crate::core::Denial;
use crate::core::ranges::Ticket;

/// Called once with the answer.
pub type Completion = Box<dyn FnOnce(Result<(), Denial>) + Send>;

/// Called once when something changed.
pub type Nudge = Box<dyn FnOnce() + Send>;

/// The waiters of one file. Empty, it costs a pointer.
#[derive(Default)]
pub struct Waiting(Option<Box<Waiters>>);

#[derive(Default)]
struct Waiters {
    locks: HashMap<Ticket, Completion>,
    changes: Vec<Nudge>,
}

impl Waiting {
    /// True if nobody waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// `completion` is called when the lock request of that ticket has its answer.
    pub fn for_lock(&mut self, ticket: Ticket, completion: Completion) {
        self.0.get_or_insert_default().locks.insert(ticket, completion);
    }

    /// `nudge` is called at the next change that could let a refused request through.
    pub fn for_change(&mut self, nudge: Nudge) {
        self.0.get_or_insert_default().changes.push(nudge);
    }

    /// Takes out those who wait for a change.
    pub fn changed(&mut self) -> Vec<Nudge> {
        let Some(waiters) = &mut self.0 else { return Vec::new() };
        let nudges = std::mem::take(&mut waiters.changes);
        self.tidy();
        nudges
    }

    /// Takes out the one who waits under that ticket.
    pub fn answered(&mut self, ticket: Ticket) -> Option<Completion> {
        let completion = self.0.as_mut()?.locks.remove(&ticket);
        self.tidy();
        completion
    }

    fn tidy(&mut self) {
        if self.0.as_ref().is_some_and(|w| w.locks.is_empty() && w.changes.is_empty()) {
            self.0 = None;
        }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (locks, changes) = self.0.as_ref().map_or((0, 0), |w| (w.locks.len(), w.changes.len()));
        write!(f, "Waiting({locks} for locks, {changes} for a change)")
    }
}
