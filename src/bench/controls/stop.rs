//! The stop of one request at [`Point::Checked`].
//!
//! Decides that a request stops there once, before its first change, and that the gates are those
//! that it fitted when it arrived. The service that carries the request out checks it first, in a
//! read transaction, and checks it again when the stop is over: a gate makes no answer possible
//! that a slow request could not get.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Controls, Point, Visitor};
use crate::clock::TimeSource;
use crate::rules::Timestamp;
use crate::rules::pattern::PatternSubject;

/// The stop that a request has ahead of it.
pub struct PendingStop {
    controls: Arc<Controls>,
    clock: Arc<dyn TimeSource>,
    gates: Vec<u64>,
    visitor: Visitor,
    passed: AtomicBool,
}

impl PendingStop {
    /// The stop of a request that has arrived. `None` if no gate at [`Point::Checked`] fits it.
    pub fn ahead_of(
        controls: &Arc<Controls>,
        clock: &Arc<dyn TimeSource>,
        seen: &PatternSubject<'_>,
        visitor: impl FnOnce() -> Visitor,
    ) -> Option<Arc<Self>> {
        let gates = controls.gates.fitting(Point::Checked, seen);
        if gates.is_empty() {
            return None;
        }
        let (controls, clock) = (Arc::clone(controls), Arc::clone(clock));
        let passed = AtomicBool::new(false);
        Some(Arc::new(Self { controls, clock, gates, visitor: visitor(), passed }))
    }

    /// True if the request has to be checked now, and to stop if its check holds.
    pub fn is_due(&self) -> bool {
        !self.passed.load(Ordering::Acquire) && self.controls.gates.can_stop(&self.gates)
    }

    /// Stops the request, whose check holds, until it is released. Returns the time at which it
    /// goes on, which is the time of the check to come.
    pub async fn pass(&self) -> Timestamp {
        self.passed.store(true, Ordering::Release);
        self.controls.gates.stop_at(&self.gates, self.visitor.clone()).await;
        self.clock.now()
    }
}

impl std::fmt::Debug for PendingStop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stop({:?})", self.gates)
    }
}
