//! A bell that wakes a background thread of a service, and tells the thread when to end.
//!
//! Decides that a ring is never lost: a thread that is at work when the bell rings looks once more.
//! The service decides what the thread does then.

use std::time::Duration;

use crate::sync::{Condvar, Mutex};

const POISON: &str = "nothing panics while a bell is held";

/// A bell for one thread. Requests may hold it after the service is gone: ringing it then does
/// nothing.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    state: Mutex<BellState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BellState {
    rung: bool,
    over: bool,
}

impl Bell {
    /// Has the thread look soon.
    pub fn ring(&self) {
        self.state.lock().expect(POISON).rung = true;
        self.changed.notify_one();
    }

    /// Has the thread end.
    pub fn end(&self) {
        self.state.lock().expect(POISON).over = true;
        self.changed.notify_one();
    }

    /// Sleeps until the bell rings, at most so long. False if the thread is to end.
    pub fn wait(&self, most: Duration) -> bool {
        let state = self.state.lock().expect(POISON);
        let (mut state, _) = self
            .changed
            .wait_timeout_while(state, most, |state| !state.rung && !state.over)
            .expect(POISON);
        state.rung = false;
        !state.over
    }
}
