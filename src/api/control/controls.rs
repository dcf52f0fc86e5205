//! Requests about what tests control: the clock, gates and faults.
//!
//! Decides how they are written as JSON, and that a pattern must be about an operation that
//! exists: a gate with a misspelt name would wait for ever. What a gate or a fault does is decided
//! in [`crate::bench::controls`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderName;
use serde::{Deserialize, Serialize};

use super::connection::{ControlConnection, RequestFailure};
use super::events::FOLLOW_WAIT_MAX;
use super::protocol::ControlAnswer;
use super::request_path::{request_path, service_of};
use crate::bench::Controls;
use crate::bench::controls::{
    FaultAction, FaultRow, Frequency, GateRow, NewFault, NewGate, Point, RULES_MAX, WaitingRow,
    kept,
};
use crate::clock::{ClockChange, TimeSource as _};
use crate::rules::Timestamp;
use crate::rules::pattern::{Pattern, is_on_mount};
use crate::rules::time::{iso, parse_iso};

/// How long a request waits at a gate at most, unless a test says otherwise, in milliseconds.
const LIMIT_MS: u64 = 60_000;
/// The longest that a gate or a fault may keep a request.
const KEPT_MAX: Duration = Duration::from_hours(1);
/// The longest error code.
const CODE_MAX: usize = 64;

/// Selects requests: those that match all of the given fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// file, blob, queue or table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The operation, such as `Put Blob`; `*` stands for any letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The path, such as `container/blob`; `*` stands for any letters but a slash, `**` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Headers, with patterns that their values fit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

impl Requests {
    /// In a few words: the operation and the path.
    fn words(&self) -> String {
        let operation = self.operation.as_deref().unwrap_or("any operation");
        match &self.path {
            Some(path) => format!("{operation} {path}"),
            None => operation.to_owned(),
        }
    }
}

/// An action on the clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "clock", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClockRequest {
    /// Nothing: it is looked at.
    Show {},
    /// It is turned forward.
    Advance {
        ms: u64,
    },
    /// It is turned forward.
    Set {
        /// To this moment, as in `2026-01-02T03:04:05Z`.
        time: String,
    },
    Freeze {},
    Run {},
}

/// An action on gates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "gate", rename_all = "kebab-case", deny_unknown_fields)]
pub enum GateRequest {
    /// They are listed, with the requests that wait.
    List {},
    Add {
        requests: Requests,
        /// received, checked or committed.
        at: String,
        /// How many, the next ones; all without it.
        times: Option<u32>,
        /// How long each waits at most.
        limit_ms: Option<u64>,
    },
    /// The answer waits until requests wait at a gate.
    Wait {
        id: u64,
        count: usize,
        /// For how long to wait for them.
        wait_ms: u64,
    },
    Release {
        /// Those of this gate.
        id: Option<u64>,
        request: Option<u64>,
        /// The first so many.
        count: Option<usize>,
    },
    /// One gate is removed, or all; the requests that wait there go on.
    Remove { id: Option<u64> },
}

/// An action on faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FaultRequest {
    List {},
    Add(FaultEntry),
    /// One is removed, or all.
    Remove {
        id: Option<u64>,
    },
}

/// A fault as it travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultEntry {
    /// Its number, once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    pub requests: Requests,
    /// The effect on the requests.
    pub action: Action,
    /// How often; always without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Where the row of yes and no of that starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How many requests have met it.
    #[serde(default)]
    pub met: u64,
}

/// The effect of a fault on a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// It is refused, and nothing is done.
    Answer { status: u16, code: String },
    /// It is carried out later.
    DelayMs(u64),
    /// The connection is closed, and nothing is done.
    DropBefore,
    /// It is done, and the connection is closed without the answer.
    DropAfter,
    /// It is done, and the answer's body ends after so many bytes.
    CutBytes(u64),
    /// It is done, and the answer's body comes at so many bytes a second.
    BytesPerSecond(u64),
}

/// The clock of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockState {
    pub now: String,
    /// The time of the system's clock.
    pub system: String,
    pub frozen: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateEntry {
    pub id: u64,
    pub requests: Requests,
    pub at: String,
    /// How many more; all without it.
    pub times: Option<u32>,
    /// How long each waits at most.
    pub limit_ms: u64,
    /// How many have stopped so far.
    pub stopped: u64,
    /// Those that wait now, in the order they came.
    pub waiting: Vec<WaitingEntry>,
}

/// A request that waits at a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingEntry {
    pub request: u64,
    pub operation: String,
    /// The path of the request without the account.
    pub path: String,
    pub client: String,
    /// The ID that its client gave it.
    pub client_request: Option<String>,
    /// The program that the client says it is.
    #[serde(default)]
    pub user_agent: Option<String>,
    /// For how long it has waited.
    pub waits_ms: u64,
}

impl ControlConnection {
    fn controls(&self) -> &Arc<Controls> {
        self.serving.accounts().controls()
    }

    /// Looks at the clock, or turns it.
    pub(super) fn clock(&self, request: &ClockRequest) -> Result<ControlAnswer, RequestFailure> {
        let clock = &self.controls().clock;
        let turn = match request {
            ClockRequest::Show {} => None,
            ClockRequest::Advance { ms } => {
                let by = Duration::from_millis(*ms);
                check_moment(clock.now().after(by))?;
                Some(ClockChange::Advance(by))
            }
            ClockRequest::Set { time } => {
                let moment = parse_iso(time).ok_or_else(|| {
                    format!("'{time}' is not a time: expected one as in 2026-01-02T03:04:05Z")
                })?;
                check_moment(moment)?;
                Some(ClockChange::Set(moment))
            }
            ClockRequest::Freeze {} => Some(ClockChange::Freeze),
            ClockRequest::Run {} => Some(ClockChange::Run),
        };
        let now = match turn {
            Some(turn) => clock.turn(turn).map_err(|error| {
                format!("{error}: it shows {}, which is later", iso(clock.now()))
            })?,
            None => clock.now(),
        };
        let state = ClockState { now: iso(now), ..self.clock_state() };
        if turn.is_some() {
            let does = if state.frozen { "stands" } else { "runs" };
            self.tell("clock", None, format!("shows {} and {does}", state.now));
        }
        Ok(ControlAnswer::Clock(state))
    }

    /// The state of the clock.
    pub(super) fn clock_state(&self) -> ClockState {
        let clock = &self.controls().clock;
        let (now, system) = (iso(clock.now()), iso(clock.outside()));
        ClockState { now, system, frozen: clock.stands() }
    }

    /// Looks at gates, or changes them.
    pub(super) fn gate(&self, request: GateRequest) -> Result<ControlAnswer, RequestFailure> {
        let gates = &self.controls().gates;
        let is_missing = |id: u64| !gates.list().iter().any(|row| row.id == id);
        Ok(match request {
            GateRequest::List {} => {
                let waiting = gates.waiting();
                let gates = gates.list().into_iter().map(|row| gate_entry(row, &waiting)).collect();
                ControlAnswer::Gates { gates }
            }
            GateRequest::Add { requests, at, times, limit_ms } => {
                check_times(times)?;
                let told = format!("{} at {at}", requests.words());
                let point = point(&at)?;
                let pattern = self.pattern(requests, Some(point))?;
                let limit = kept_for(limit_ms.unwrap_or(LIMIT_MS))?;
                let id = gates.add(NewGate { pattern, point, times, limit });
                let id = id.ok_or_else(too_many)?;
                self.tell("gate-added", Some(id), told);
                ControlAnswer::Added { id }
            }
            GateRequest::Wait { id, count, wait_ms } => {
                if is_missing(id) {
                    return Err(no_such("gate", id));
                }
                let patience = Duration::from_millis(wait_ms).min(FOLLOW_WAIT_MAX);
                ControlAnswer::Counted { count: gates.wait_for(id, count, patience) }
            }
            GateRequest::Release { id: Some(id), .. } if is_missing(id) => {
                return Err(no_such("gate", id));
            }
            GateRequest::Release { id, request, count } => {
                ControlAnswer::Counted { count: gates.release(request, id, count) }
            }
            GateRequest::Remove { id } => {
                let answer = removed("gate", id, gates.remove(id))?;
                self.tell("gate-removed", id, if id.is_some() { "" } else { "all" });
                answer
            }
        })
    }

    /// Looks at faults, or changes them.
    pub(super) fn fault(&self, request: FaultRequest) -> Result<ControlAnswer, RequestFailure> {
        let faults = &self.controls().faults;
        Ok(match request {
            FaultRequest::List {} => ControlAnswer::Faults {
                faults: faults.list().into_iter().map(fault_entry).collect(),
            },
            FaultRequest::Add(entry) => {
                let frequency = frequency(&entry)?;
                let told = entry.requests.words();
                let (pattern, action) =
                    (self.pattern(entry.requests, None)?, action(entry.action)?);
                check_possible(&pattern, &action)?;
                let id = faults.add(NewFault { pattern, action, frequency });
                let id = id.ok_or_else(too_many)?;
                self.tell("fault-added", Some(id), told);
                ControlAnswer::Added { id }
            }
            FaultRequest::Remove { id } => {
                let answer = removed("fault", id, faults.remove(id))?;
                self.tell("fault-removed", id, if id.is_some() { "" } else { "all" });
                answer
            }
        })
    }

    /// The pattern of these requests, if any request can fit it, and stop at that point.
    fn pattern(&self, requests: Requests, at: Option<Point>) -> Result<Pattern, RequestFailure> {
        let Requests { service, operation, path, account, headers } = requests;
        let service = service.as_deref().map(service_of).transpose()?;
        let (service, path) = match path {
            Some(path) => request_path(service, path)?,
            None => (service, None),
        };
        if let Some(name) = &account
            && self.serving.accounts().get(name).is_none()
        {
            return Err(RequestFailure::missing(format!("there is no account '{name}' here")));
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
        let stops = |point| known.iter().any(|operation| operation.points.contains(&point));
        match at {
            _ if known.is_empty() => Err(unknown(wanted, mounted).into()),
            Some(point) if !stops(point) => Err(cannot_stop(wanted, point, stops).into()),
            _ => Ok(pattern),
        }
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

const POINTS: [Point; 3] = [Point::Received, Point::Checked, Point::Committed];

fn point(text: &str) -> Result<Point, String> {
    let found = POINTS.into_iter().find(|point| point_name(*point) == text);
    let expected = "expected received, checked or committed";
    found.ok_or_else(|| format!("'{text}' is not a point: {expected}"))
}

/// The name of a point.
pub fn point_name(point: Point) -> &'static str {
    point.name()
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
        (false, _) => "it is named as in 'Put Blob' or 'Get *'",
    };
    format!("no operation is called '{operation}': {cure}")
}

/// Why an operation does not stop at a point, and where it can be stopped.
fn cannot_stop(operation: &str, point: Point, stops: impl Fn(Point) -> bool) -> String {
    let others: Vec<_> = POINTS.into_iter().filter(|other| stops(*other)).map(point_name).collect();
    let cure = match others.as_slice() {
        [] => "the kernel holds the directory meanwhile; a fault can meet it".to_owned(),
        others => format!("use {}", others.join(" or ")),
    };
    let point = point_name(point);
    format!("'{operation}' does not stop at {point}: {cure}")
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

fn frequency(entry: &FaultEntry) -> Result<Frequency, String> {
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

/// A call on a mount has no connection and no body that a fault could end, and a request no errno.
fn check_possible(pattern: &Pattern, action: &FaultAction) -> Result<(), String> {
    let on_mount = pattern.operation.as_deref().is_some_and(is_on_mount);
    match action {
        FaultAction::Answer { code, .. } if !on_mount && is_errno(code) => Err(format!(
            "{code} is for calls on a mount, as in 'Mount Open': requests have a status and a \
             code, as in 503:ServerBusy"
        )),
        FaultAction::Answer { .. } | FaultAction::Delay(_) => Ok(()),
        _ if !on_mount => Ok(()),
        _ => Err("a call on a mount has no connection: use an answer or a delay".to_owned()),
    }
}

/// True for the name of an errno, as in `EIO`: error codes of the services have small letters.
fn is_errno(code: &str) -> bool {
    code.starts_with('E') && !code.bytes().any(|byte| byte.is_ascii_lowercase())
}

fn too_many() -> RequestFailure {
    RequestFailure::busy(format!(
        "a server has at most {RULES_MAX} of them, and all are still in force: remove one"
    ))
}

fn no_such(what: &str, id: u64) -> RequestFailure {
    RequestFailure::missing(format!("there is no {what} {id}"))
}

fn removed(what: &str, id: Option<u64>, count: usize) -> Result<ControlAnswer, RequestFailure> {
    match id {
        Some(id) if count == 0 => Err(no_such(what, id)),
        _ => Ok(ControlAnswer::Counted { count }),
    }
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
    let entry = |one: &WaitingRow| WaitingEntry {
        request: one.id,
        operation: one.visitor.operation.clone(),
        path: one.visitor.path.clone(),
        client: one.visitor.client.clone(),
        client_request: one.visitor.client_request.clone(),
        user_agent: one.visitor.user_agent.as_deref().map(str::to_owned),
        waits_ms: millis(one.since),
    };
    GateEntry {
        id: row.id,
        at: point_name(row.gate.point).to_owned(),
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
