//! The controls of a test: gates that stop requests, faults that are injected into them, and the
//! clock.
//!
//! A gate or fault is removed when its value is dropped. Which requests match a pattern is decided
//! in [`crate::rules::pattern`].

use std::time::Duration;

use super::error::Error;
use super::{Action, Point, Requests, Server};
use crate::api::{NewFault, NewGate};
use crate::bench::Controls;
use crate::clock::{ClockChange, TimeSource as _};
use crate::rules::Timestamp;

/// A gate to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateOptions {
    /// Which requests stop.
    pub requests: Requests,
    /// Where they stop.
    pub at: Point,
    /// The number of requests that stop, the next ones; all without it.
    pub times: Option<u32>,
    /// When a request goes on by itself.
    pub limit: Duration,
}

impl GateOptions {
    /// Stops all requests of an operation on a path where they are received. Both are patterns, as
    /// in `Put Blob` and `container/*`.
    pub fn new(operation: impl Into<String>, path: impl Into<String>) -> Self {
        let requests = requests(operation.into(), path.into());
        Self { requests, at: Point::Received, times: None, limit: Duration::from_mins(1) }
    }
}

/// A fault to add.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultOptions {
    /// The requests that the fault applies to.
    pub requests: Requests,
    /// The effect on the requests.
    pub action: Action,
    /// The number of requests that the fault applies to, the next ones; all without it.
    pub times: Option<u32>,
    /// The probability that the fault applies, and the seed of the choice.
    pub chance: Option<(f64, u64)>,
}

impl FaultOptions {
    /// A fault for all requests of an operation on a path.
    pub fn new(
        operation: impl Into<String>,
        path: impl Into<String>,
        action: Action,
    ) -> FaultOptions {
        let requests = requests(operation.into(), path.into());
        Self { requests, action, times: None, chance: None }
    }
}

fn requests(operation: String, path: String) -> Requests {
    Requests { operation: Some(operation), path: Some(path), ..Requests::default() }
}

/// A point where requests stop. Removed when dropped; requests that wait then go on.
#[derive(Debug)]
pub struct Gate<'a> {
    controls: &'a Controls,
    id: u64,
}

impl<'a> Gate<'a> {
    pub(super) fn add(server: &'a Server, options: GateOptions) -> Result<Self, Error> {
        let gate = NewGate {
            at: Some(options.at.name().to_owned()),
            times: options.times,
            limit_ms: Some(u64::try_from(options.limit.as_millis()).unwrap_or(u64::MAX)),
            ..NewGate::new(options.requests)
        };
        let id = server.session()?.add_gate(gate)?.gate;
        Ok(Self { controls: server.accounts().controls(), id })
    }

    /// The number of the gate, as `latchfs gate list` shows it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How many requests wait here.
    pub fn waiting(&self) -> usize {
        self.controls.gates.wait_for(self.id, 0, Duration::ZERO)
    }

    /// Waits until `count` requests have stopped here, for that long at most. Blocks the thread: in
    /// an async test, call it from a thread that may block, such as `spawn_blocking`'s.
    pub fn wait(&self, count: usize, patience: Duration) -> Result<(), Error> {
        let waiting = self.controls.gates.wait_for(self.id, count, patience);
        if waiting < count {
            return Err(Error::TooFew { waiting, wanted: count });
        }
        Ok(())
    }

    /// Lets the first `count` requests go, or all. Returns how many went.
    pub fn release(&self, count: Option<usize>) -> usize {
        self.controls.gates.release(None, Some(self.id), count)
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        self.controls.gates.remove(Some(self.id));
    }
}

/// A fault that is injected into requests. Removed when dropped.
#[derive(Debug)]
pub struct Fault<'a> {
    controls: &'a Controls,
    id: u64,
}

impl<'a> Fault<'a> {
    pub(super) fn add(server: &'a Server, options: FaultOptions) -> Result<Self, Error> {
        let FaultOptions { requests, action, times, chance } = options;
        let (probability, seed) = (chance.map(|(one, _)| one), chance.map(|(_, seed)| seed));
        let new = NewFault { times, probability, seed, ..NewFault::new(requests, &action) };
        let id = server.session()?.add_fault(new)?.fault;
        Ok(Self { controls: server.accounts().controls(), id })
    }

    /// The number of the fault, as `latchfs fault list` shows it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How many requests have met it.
    pub fn met(&self) -> u64 {
        let rows = self.controls.faults.list();
        rows.iter().find(|row| row.id == self.id).map_or(0, |row| row.met)
    }
}

impl Drop for Fault<'_> {
    fn drop(&mut self) {
        self.controls.faults.remove(Some(self.id));
    }
}

/// The clock of a server: leases, hidden messages and the expiry of SAS follow it.
#[derive(Clone, Copy, Debug)]
pub struct Clock<'a>(&'a Controls);

impl<'a> Clock<'a> {
    pub(super) fn of(server: &'a Server) -> Self {
        Self(server.accounts().controls())
    }

    /// The time that it shows.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Turns it forward. Returns the time that it then shows.
    pub fn advance(&self, by: Duration) -> Timestamp {
        self.turned(ClockChange::Advance(by))
    }

    /// Turns it forward to this moment, which must not be past.
    pub fn set(&self, moment: Timestamp) -> Result<Timestamp, Error> {
        Ok(self.0.clock.turn(ClockChange::Set(moment))?)
    }

    /// Stops it. Returns the time that it shows.
    pub fn freeze(&self) -> Timestamp {
        self.turned(ClockChange::Freeze)
    }

    /// Lets it go again, from where it is. Returns the time that it shows.
    pub fn run(&self) -> Timestamp {
        self.turned(ClockChange::Run)
    }

    /// Turns the clock in a way that is never back.
    fn turned(self, turn: ClockChange) -> Timestamp {
        self.0.clock.turn(turn).unwrap_or_else(|_| self.now())
    }
}
