//! Requests about what tests control: the clock, gates and faults.
//!
//! Decides that a pattern must be about an operation that exists: a gate with a misspelt name would
//! wait for ever. How calls and answers are written as JSON is in [`calls`], what a gate or a fault
//! does is decided in [`crate::bench::controls`].

mod calls;

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderName;

pub use calls::{
    Action, ClockState, DropRequest, FaultAdded, FaultEntry, FaultList, GateAdded, GateEntry,
    GateList, NewFault, NewGate, ReleaseGate, ReleaseGates, ReleaseRequest, Removed, Requests,
    TurnClock, WaitAtGate, Waiting, WaitingEntry, Went,
};

use super::address::{request_path, service_of};
use super::failure::ApiFailure;
use super::routes::{
    GetClock, GetFaults, GetGate, GetGates, RemoveFault, RemoveFaults, RemoveGate, RemoveGates,
};
use super::session::Session;
use crate::bench::Controls;
use crate::bench::controls::{
    self as bench, FaultAction, FaultRow, Frequency, GateRow, Point, RULES_MAX, WaitingRow, kept,
};
use crate::clock::{ClockChange, SystemClock, TimeSource as _};
use crate::journal::peers::{identity, process_of};
use crate::rules::Timestamp;
use crate::rules::pattern::{Pattern, is_on_mount, is_over_smb};
use crate::rules::time::{iso, parse_iso};

/// How long a request waits at a gate at most, unless a test says otherwise, in milliseconds.
const LIMIT_MS: u64 = 60_000;
/// The longest that a gate or a fault may keep a request.
const KEPT_MAX: Duration = Duration::from_hours(1);
/// The longest error code.
const CODE_MAX: usize = 64;

const ACTION_FORM: &str = "'action' is one of {\"answer\": {\"status\": 503, \"code\": \
                           \"ServerBusy\"}}, {\"delay_ms\": 100}, \"drop_before\", \"drop_after\", \
                           {\"cut_bytes\": 10} and {\"bytes_per_second\": 100}";

impl Session {
    fn controls(&self) -> &Arc<Controls> {
        self.serving.controls()
    }

    /// The state of the clock.
    pub fn clock(&self, _: GetClock) -> Result<ClockState, ApiFailure> {
        Ok(self.clock_state())
    }

    pub fn turn_clock(&self, turn: TurnClock) -> Result<ClockState, ApiFailure> {
        let clock = &self.controls().clock;
        let TurnClock { advance_ms, set, freeze, run } = turn;
        let turn = match (advance_ms, set, freeze, run) {
            (Some(ms), None, None, None) => {
                let by = Duration::from_millis(ms);
                check_moment(clock.now().after(by))?;
                ClockChange::Advance(by)
            }
            (None, Some(time), None, None) => {
                let moment = parse_iso(&time).ok_or_else(|| {
                    format!("'{time}' is not a time: expected one as in 2026-01-02T03:04:05Z")
                })?;
                check_moment(moment)?;
                ClockChange::Set(moment)
            }
            (None, None, Some(true), None) => ClockChange::Freeze,
            (None, None, None, Some(true)) => ClockChange::Run,
            _ => {
                let why = "give one of advance_ms, set, \"freeze\": true and \"run\": true";
                return Err(ApiFailure::bad(why));
            }
        };
        let now = clock
            .turn(turn)
            .map_err(|error| format!("{error}: it shows {}, which is later", iso(clock.now())))?;
        let state = ClockState { now: iso(now), ..self.clock_state() };
        let does = if state.frozen { "stands" } else { "runs" };
        self.tell("clock", None, format!("shows {} and {does}", state.now));
        Ok(state)
    }

    /// The state of the clock.
    pub(super) fn clock_state(&self) -> ClockState {
        let clock = &self.controls().clock;
        let (now, system) = (iso(clock.now()), iso(clock.outside()));
        ClockState { now, system, frozen: clock.stands() }
    }

    pub fn gates(&self, _: GetGates) -> Result<GateList, ApiFailure> {
        let gates = &self.controls().gates;
        let waiting = gates.waiting();
        let gates = gates.list().into_iter().map(|row| gate_entry(row, &waiting)).collect();
        Ok(GateList { gates })
    }

    pub fn gate(&self, GetGate { id }: GetGate) -> Result<GateEntry, ApiFailure> {
        let found = self.gates(GetGates {})?.gates.into_iter().find(|gate| gate.id == id);
        found.ok_or_else(|| no_such("gate", id))
    }

    pub fn add_gate(&self, gate: NewGate) -> Result<GateAdded, ApiFailure> {
        let NewGate { service, operation, path, account, headers, at, times, limit_ms } = gate;
        check_times(times)?;
        let requests = Requests { service, operation, path, account, headers };
        let at = at.unwrap_or_else(|| "received".to_owned());
        let told = format!("{} at {at}", requests.words());
        let point = point(&at)?;
        let pattern = self.pattern(requests, true)?;
        let limit = kept_for(limit_ms.unwrap_or(LIMIT_MS))?;
        let id = self.controls().gates.add(bench::NewGate { pattern, point, times, limit });
        let gate = id.ok_or_else(too_many)?;
        self.tell("gate-added", Some(gate), told);
        Ok(GateAdded { gate })
    }

    pub fn remove_gate(&self, RemoveGate { id }: RemoveGate) -> Result<Removed, ApiFailure> {
        let removed = removed("gate", id, self.controls().gates.remove(Some(id)))?;
        self.tell("gate-removed", Some(id), "");
        Ok(removed)
    }

    pub fn remove_gates(&self, _: RemoveGates) -> Result<Removed, ApiFailure> {
        let removed = self.controls().gates.remove(None);
        self.tell("gate-removed", None, "all");
        Ok(Removed { removed })
    }

    pub fn release_gate(&self, wanted: ReleaseGate) -> Result<Went, ApiFailure> {
        let ReleaseGate { id, count } = wanted;
        self.release_gates(ReleaseGates { gate: Some(id), request: None, count })
    }

    pub fn release_request(&self, wanted: ReleaseRequest) -> Result<Went, ApiFailure> {
        let ReleaseRequest { id, fault } = wanted;
        let gates = &self.controls().gates;
        let went = match fault.as_deref() {
            None => gates.release(Some(id), None, None) > 0,
            Some("drop_after") => gates.release_unanswered(id),
            Some(other) => {
                let why = format!("there is no fault '{other}' here, only drop_after");
                return Err(ApiFailure::bad(why));
            }
        };
        if went { Ok(Went { released: 1 }) } else { Err(waits_nowhere(id)) }
    }

    pub fn drop_request(&self, DropRequest { id }: DropRequest) -> Result<Went, ApiFailure> {
        let ended = self.controls().gates.end(id);
        if ended { Ok(Went { released: 1 }) } else { Err(waits_nowhere(id)) }
    }

    pub fn release_gates(&self, wanted: ReleaseGates) -> Result<Went, ApiFailure> {
        let ReleaseGates { gate, request, count } = wanted;
        if let Some(id) = gate {
            self.check_gate(id)?;
        }
        let count = count.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        Ok(Went { released: self.controls().gates.release(request, gate, count) })
    }

    pub fn check_gate(&self, id: u64) -> Result<(), ApiFailure> {
        let is_there = self.controls().gates.list().iter().any(|row| row.id == id);
        if is_there { Ok(()) } else { Err(no_such("gate", id)) }
    }

    pub fn faults(&self, _: GetFaults) -> Result<FaultList, ApiFailure> {
        let faults = self.controls().faults.list().into_iter().map(fault_entry).collect();
        Ok(FaultList { faults })
    }

    pub fn add_fault(&self, fault: NewFault) -> Result<FaultAdded, ApiFailure> {
        let frequency = frequency(&fault)?;
        let NewFault { service, operation, path, account, headers, action: effect, .. } = fault;
        let effect = serde_json::from_value(effect).map_err(|_| ApiFailure::bad(ACTION_FORM))?;
        let requests = Requests { service, operation, path, account, headers };
        let told = requests.words();
        let (pattern, action) = (self.pattern(requests, false)?, action(effect)?);
        check_possible(&pattern, &action)?;
        let id = self.controls().faults.add(bench::NewFault { pattern, action, frequency });
        let fault = id.ok_or_else(too_many)?;
        self.tell("fault-added", Some(fault), told);
        Ok(FaultAdded { fault })
    }

    pub fn remove_fault(&self, RemoveFault { id }: RemoveFault) -> Result<Removed, ApiFailure> {
        let removed = removed("fault", id, self.controls().faults.remove(Some(id)))?;
        self.tell("fault-removed", Some(id), "");
        Ok(removed)
    }

    pub fn remove_faults(&self, _: RemoveFaults) -> Result<Removed, ApiFailure> {
        let removed = self.controls().faults.remove(None);
        self.tell("fault-removed", None, "all");
        Ok(Removed { removed })
    }

    /// The pattern of these requests, if any request can fit it and, for a gate, stop.
    fn pattern(&self, requests: Requests, stops: bool) -> Result<Pattern, ApiFailure> {
        let Requests { service, operation, path, account, headers } = requests;
        let service = service.as_deref().map(service_of).transpose()?;
        let (service, path) = match path {
            Some(path) => request_path(service, path)?,
            None => (service, None),
        };
        if let Some(name) = &account
            && self.serving.account(name).is_none()
        {
            return Err(ApiFailure::not_found(format!("there is no account '{name}' here")));
        }
        if let Some(name) =
            headers.keys().find(|name| HeaderName::from_bytes(name.as_bytes()).is_err())
        {
            let why = format!("no request has a header '{}'", name.escape_debug());
            return Err(why.into());
        }
        let headers = headers.into_iter().collect();
        let pattern = Pattern { service, operation, account, path, headers };
        let mut known = self.serving.operations();
        let mounted = known.iter().any(|operation| is_on_mount(operation.name));
        known.retain(|operation| {
            pattern.service.is_none_or(|service| service == operation.service)
                && pattern.names(operation.name)
        });
        let wanted = pattern.operation.as_deref().unwrap_or_default();
        if known.is_empty() {
            return Err(unknown(wanted, mounted).into());
        }
        if stops && !known.iter().any(|operation| operation.can_stop) {
            let why = "the kernel holds the directory meanwhile; a fault can meet it";
            return Err(format!("'{wanted}' does not stop at a gate: {why}").into());
        }
        Ok(pattern)
    }
}

/// Times past this one are not what a test means, and cannot be taken back: what is stored with
/// them stays in the future.
fn check_moment(moment: Timestamp) -> Result<(), String> {
    const LAST: &str = "2200-01-01T00:00:00Z";
    match parse_iso(LAST) {
        Some(last) if moment > last => Err(format!("the clock is not turned beyond {LAST}")),
        _ => Ok(()),
    }
}

fn point(text: &str) -> Result<Point, String> {
    let found = Point::ALL.into_iter().find(|point| point.name() == text);
    found.ok_or_else(|| match text {
        "checked" => "the point 'checked' is gone: stop the request at received, let the others \
                      go first, then release it"
            .to_owned(),
        _ => format!("'{text}' is not a point: expected received or committed"),
    })
}

fn unknown(operation: &str, mounted: bool) -> String {
    let write = Pattern { operation: Some(operation.to_owned()), ..Pattern::default() };
    let cure = match (is_on_mount(operation), mounted) {
        (true, false) => {
            return format!("'{operation}' is a call on a mount: this server has none");
        }
        (true, true) if write.names("Mount Write") => {
            return format!("'{operation}' needs a server that was started with --no-passthrough");
        }
        (true, true) => {
            "a call on a mount is Mount Open, Mount Create, Mount Unlink, Mount Rename or Mount \
             Write"
        }
        _ if is_over_smb(operation) => {
            "an SMB request is named as in 'SMB Create' or 'SMB Write', on a server that was \
             started with --smb"
        }
        (false, _) => "it is named as in 'Put Blob' or 'Get *'",
    };
    format!("no operation is called '{operation}': {cure}")
}

fn kept_for(ms: u64) -> Result<Duration, String> {
    let time = Duration::from_millis(ms);
    if time > KEPT_MAX {
        return Err("a request is kept for an hour at most".to_owned());
    }
    Ok(time)
}

/// A gate or a fault for no request does nothing.
fn check_times(times: Option<u32>) -> Result<(), String> {
    if times == Some(0) {
        return Err("0 times is never: give 1 or more, or none for every request".to_owned());
    }
    Ok(())
}

fn frequency(entry: &NewFault) -> Result<Frequency, String> {
    check_times(entry.times)?;
    match (entry.times, entry.probability) {
        (None, None) => Ok(Frequency::Always),
        (Some(times), None) => Ok(Frequency::Times(times)),
        (None, Some(probability)) if (0.0..=1.0).contains(&probability) => {
            Ok(Frequency::Chance { probability, seed: entry.seed.unwrap_or_default() })
        }
        (None, Some(_)) => Err("a probability is a number from 0 to 1".to_owned()),
        (Some(_), Some(_)) => Err("give a number of times or a probability, not both".to_owned()),
    }
}

fn action(action: Action) -> Result<FaultAction, String> {
    Ok(match action {
        Action::Answer { status, code } => {
            let legal = !code.is_empty() && code.len() <= CODE_MAX;
            if !legal || !code.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Err(format!("'{code}' cannot be an error code: letters and digits"));
            }
            if !(400..=599).contains(&status) {
                return Err(format!("{status} is not the status of an error: 400 to 599"));
            }
            FaultAction::Answer { status, code: kept(&code) }
        }
        Action::DelayMs(ms) => FaultAction::Delay(kept_for(ms)?),
        Action::DropBefore => FaultAction::DropBefore,
        Action::DropAfter => FaultAction::DropAfter,
        Action::CutBytes(bytes) => FaultAction::Cut(bytes),
        Action::BytesPerSecond(0) => return Err("0 bytes a second never end".to_owned()),
        Action::BytesPerSecond(speed) => FaultAction::Slow(speed),
    })
}

/// A call on a mount has no connection and no body that a fault could end, an SMB request no body,
/// and a request no errno.
fn check_possible(pattern: &Pattern, action: &FaultAction) -> Result<(), String> {
    let on_mount = pattern.operation.as_deref().is_some_and(is_on_mount);
    let over_smb = pattern.operation.as_deref().is_some_and(is_over_smb);
    match action {
        FaultAction::Answer { code, .. } if !on_mount && is_errno(code) => Err(format!(
            "{code} is for calls on a mount, as in 'Mount Open': requests have a status and a \
             code, as in 503:ServerBusy"
        )),
        FaultAction::Answer { .. } | FaultAction::Delay(_) => Ok(()),
        FaultAction::Cut(_) | FaultAction::Slow(_) if over_smb => {
            Err("an SMB request has no body: use an answer, a delay or the end of the connection"
                .to_owned())
        }
        _ if !on_mount => Ok(()),
        _ => Err("a call on a mount has no connection: use an answer or a delay".to_owned()),
    }
}

/// True for the name of an errno, as in `EIO`: error codes of the services have small letters.
fn is_errno(code: &str) -> bool {
    code.starts_with('E') && !code.bytes().any(|byte| byte.is_ascii_lowercase())
}

fn too_many() -> ApiFailure {
    ApiFailure::busy(format!(
        "a server has at most {RULES_MAX} of them, and all are still in force: remove one"
    ))
}

fn waits_nowhere(request: u64) -> ApiFailure {
    ApiFailure::not_found(format!("request {request} waits at no gate"))
}

fn no_such(what: &str, id: u64) -> ApiFailure {
    ApiFailure::not_found(format!("there is no {what} {id}"))
}

fn removed(what: &str, id: u64, removed: usize) -> Result<Removed, ApiFailure> {
    if removed > 0 { Ok(Removed { removed }) } else { Err(no_such(what, id)) }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn requests_of(pattern: Pattern) -> Requests {
    let Pattern { service, operation, account, path, headers } = pattern;
    let service = service.map(|kind| kind.label().to_owned());
    Requests { service, operation, path, account, headers: headers.into_iter().collect() }
}

fn gate_entry(row: GateRow, waiting: &[WaitingRow]) -> GateEntry {
    let here = waiting.iter().filter(|one| one.gate == row.id);
    let entry = |one: &WaitingRow| {
        let process = process_of(&one.visitor.who.connection, SystemClock.now());
        let client = identity(&one.visitor.who, process.as_ref());
        WaitingEntry {
            request: one.id,
            operation: one.visitor.operation.clone(),
            path: one.visitor.path.clone(),
            client: client.name.to_string(),
            client_request: one.visitor.client_request.as_deref().map(str::to_owned),
            user_agent: one.visitor.user_agent.as_deref().map(str::to_owned),
            pid: process.as_ref().map(|process| process.pid),
            program: process.map(|process| process.program.to_string()),
            waits_ms: millis(one.since),
        }
    };
    GateEntry {
        id: row.id,
        at: row.gate.point.name().to_owned(),
        requests: requests_of(row.gate.pattern),
        times: row.gate.times,
        limit_ms: millis(row.gate.limit),
        stopped: row.stopped,
        waiting: here.map(entry).collect(),
    }
}

fn fault_entry(row: FaultRow) -> FaultEntry {
    let (times, probability, seed) = match row.fault.frequency {
        Frequency::Always => (None, None, None),
        Frequency::Times(left) => (Some(left), None, None),
        Frequency::Chance { probability, seed } => (None, Some(probability), Some(seed)),
    };
    let action = match row.fault.action {
        FaultAction::Answer { status, code } => Action::Answer { status, code: code.to_owned() },
        FaultAction::Delay(time) => Action::DelayMs(millis(time)),
        FaultAction::DropBefore => Action::DropBefore,
        FaultAction::DropAfter => Action::DropAfter,
        FaultAction::Cut(bytes) => Action::CutBytes(bytes),
        FaultAction::Slow(bytes) => Action::BytesPerSecond(bytes),
    };
    let requests = requests_of(row.fault.pattern);
    FaultEntry { id: Some(row.id), requests, action, times, probability, seed, met: row.met }
}
