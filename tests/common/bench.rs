//! A server inside the test's process, with its gates, faults and clock at hand.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use latchfs::Server;
use latchfs::bench::Controls;
use latchfs::bench::controls::{FaultAction, Frequency, NewFault, NewGate, Point};
use latchfs::clock::ClockChange;
use latchfs::rules::pattern::Pattern;
use latchfs::rules::service::ServiceKind;
use latchfs::server::{Accounts, Builder, Hold, HoldError, HoldOptions};

use super::http::{Got, ask};

/// How long a condition may take to come true.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How long a gate keeps a request that no test releases.
pub const LIMIT: Duration = Duration::from_mins(5);

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        // A thread that spins would have the core that the server needs.
        std::thread::sleep(Duration::from_micros(100));
    }
}

pub struct Bench {
    accounts: Arc<Accounts>,
    endpoints: Vec<(ServiceKind, String)>,
    /// Stops when dropped. Threads of a test share the bench, which a server alone they could not.
    server: Mutex<Server>,
}

/// A gate of the server; removed when dropped.
pub struct Gate {
    controls: Arc<Controls>,
    pub id: u64,
}

impl Bench {
    /// A server with the share `docs` that takes requests without a signature.
    pub fn start() -> Self {
        Self::with(|builder| builder)
    }

    pub fn with(change: impl FnOnce(Builder) -> Builder) -> Self {
        let server = change(Server::builder().share("docs").no_auth()).start().unwrap();
        let (accounts, endpoints) = (Arc::clone(server.accounts()), server.endpoints());
        Self { accounts, endpoints, server: Mutex::new(server) }
    }

    pub fn controls(&self) -> &Arc<Controls> {
        self.accounts.controls()
    }

    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Removes all data.
    pub fn reset(&self) {
        self.server.lock().unwrap().reset().unwrap();
    }

    /// A held open of a file.
    pub fn hold(&self, options: &HoldOptions) -> Result<Hold, HoldError> {
        self.server.lock().unwrap().hold(options)
    }

    /// The URL of a service.
    pub fn endpoint(&self, service: ServiceKind) -> String {
        let found = self.endpoints.iter().find(|(kind, _)| *kind == service);
        found.unwrap().1.clone()
    }

    /// Where a service listens.
    pub fn addr(&self, service: ServiceKind) -> SocketAddr {
        self.endpoint(service).split('/').nth(2).unwrap().parse().unwrap()
    }

    /// Sends a request without a signature.
    pub fn ask(
        &self,
        service: ServiceKind,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Got {
        ask(self.addr(service), method, target, headers, body)
    }

    /// A gate for an operation and a path.
    pub fn gate(&self, operation: &str, path: Option<&str>, point: Point) -> Gate {
        let pattern = pattern(operation, path);
        self.add_gate(NewGate { pattern, point, times: None, limit: LIMIT })
    }

    /// A gate that stops one request.
    pub fn gate_once(&self, operation: &str, path: Option<&str>, point: Point) -> Gate {
        self.gate_times(operation, path, point, 1)
    }

    /// A gate that stops so many requests.
    pub fn gate_times(
        &self,
        operation: &str,
        path: Option<&str>,
        point: Point,
        times: u32,
    ) -> Gate {
        let pattern = pattern(operation, path);
        self.add_gate(NewGate { pattern, point, times: Some(times), limit: LIMIT })
    }

    /// A gate that keeps requests for so long.
    pub fn gate_for(&self, operation: &str, point: Point, limit: Duration) -> Gate {
        let pattern = pattern(operation, None);
        self.add_gate(NewGate { pattern, point, times: None, limit })
    }

    pub fn add_gate(&self, gate: NewGate) -> Gate {
        Gate::add(self.controls(), gate)
    }

    /// A fault for an operation and a path.
    pub fn fault(
        &self,
        operation: &str,
        path: Option<&str>,
        action: FaultAction,
        frequency: Frequency,
    ) -> u64 {
        let fault = NewFault { pattern: pattern(operation, path), action, frequency };
        self.controls().faults.add(fault).unwrap()
    }

    /// Turns the clock of the server forward.
    pub fn advance(&self, seconds: u64) {
        self.controls().clock.turn(ClockChange::Advance(Duration::from_secs(seconds))).unwrap();
    }
}

/// The requests for an operation on a path.
pub fn pattern(operation: &str, path: Option<&str>) -> Pattern {
    Pattern {
        operation: Some(operation.to_owned()),
        path: path.map(str::to_owned),
        ..Pattern::default()
    }
}

impl Gate {
    pub fn add(controls: &Arc<Controls>, gate: NewGate) -> Self {
        let id = controls.gates.add(gate).unwrap();
        Self { controls: Arc::clone(controls), id }
    }

    /// Waits until so many requests have stopped here.
    #[track_caller]
    pub fn wait(&self, count: usize) {
        let waiting = self.controls.gates.wait_for(self.id, count, PATIENCE);
        assert!(waiting >= count, "{waiting} of {count} requests wait at gate {}", self.id);
    }

    /// How many have stopped here so far.
    pub fn stopped(&self) -> u64 {
        let rows = self.controls.gates.list();
        rows.iter().find(|row| row.id == self.id).map_or(0, |row| row.stopped)
    }

    /// How many wait here now.
    pub fn waiting(&self) -> usize {
        let rows = self.controls.gates.list();
        rows.iter().find(|row| row.id == self.id).map_or(0, |row| row.waiting)
    }

    /// Releases the request that has waited longest.
    #[track_caller]
    pub fn release(&self) {
        assert_eq!(self.controls.gates.release(None, Some(self.id), Some(1)), 1);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.controls.gates.remove(Some(self.id));
    }
}
