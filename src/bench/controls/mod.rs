//! The controls of a server for tests: its clock, gates that stop requests, faults that are
//! injected into them.
//!
//! Decides which gates and faults apply to a request. How a request is matched is decided in
//! [`crate::rules::pattern`]; front ends ask at each point that they pass. A server without gates
//! and faults, and without an exploration, pays three loads of a number for each request.

mod faults;
mod gates;

use std::sync::Arc;

pub use faults::{FaultAction, FaultHit, FaultRow, Faults, Frequency, NewFault, kept};
pub use gates::{EndedAtGate, GateRow, Gates, NewGate, Passed, Place, Stopped, WaitingRow};

pub use crate::rules::gate::{Point, Visitor};

use super::explore::Stage;
use super::report::Reporter;
use crate::clock::{TestClock, TimeSource};
use crate::journal::Journal;

/// How many gates, and how many faults, a server has at most.
pub const RULES_MAX: usize = 1_000;

/// True if a gate or a fault applies to no more requests. `left` is the number of requests that it
/// still applies to; one without a number applies to all.
fn is_over(left: Option<u32>) -> bool {
    left == Some(0)
}

/// Makes room for one more gate or fault: if there are too many, the oldest one that is over goes.
/// `None` if there is no such one.
fn make_room<R>(rules: &mut Vec<R>, is_over: impl Fn(&R) -> bool) -> Option<()> {
    if rules.len() >= RULES_MAX {
        let oldest = rules.iter().position(is_over)?;
        rules.remove(oldest);
    }
    Some(())
}

/// The controls of one server: clock, gates, faults.
#[derive(Debug)]
pub struct Controls {
    /// The clock of all services.
    pub clock: Arc<TestClock>,
    pub gates: Gates,
    pub faults: Faults,
    /// The journal that is told which gates and faults a request meets.
    pub journal: Arc<Journal>,
    /// What the journal's rows say of the clients.
    pub report: Arc<Reporter>,
    /// Where the requests of an exploration's clients wait for their turn.
    pub stage: Stage,
}

impl Default for Controls {
    fn default() -> Self {
        let clock = Arc::<TestClock>::default();
        let journal = Arc::new(Journal::new(Arc::clone(&clock) as Arc<dyn TimeSource>));
        Self::new(clock, journal)
    }
}

impl Controls {
    /// Controls with the clock and the journal of their server.
    pub fn new(clock: Arc<TestClock>, journal: Arc<Journal>) -> Self {
        let gates = Gates::told_of_in(Arc::clone(&journal));
        let report = Arc::new(Reporter::new(Arc::clone(&journal)));
        let (faults, stage) = (Faults::default(), Stage::default());
        Self { clock, gates, faults, journal, report, stage }
    }

    /// Whether any gate or fault or exploration is there: else requests need not be described.
    pub fn are_set(&self) -> bool {
        self.gates.are_set() || self.faults.are_set() || self.stage.is_set()
    }
}
