//! The calls of the API: a row each, with parameters, body and answer.
//!
//! The router and the OpenAPI document are both made of this table. The shapes that a row names are
//! in `schemas.json`.

use hyper::Method;
use serde_json::Value;

use super::call::ApiCall;
use super::failure::ApiFailure;
use super::{bench, events, looks, states};
use crate::api::control::{ControlAnswer, ControlRequest};

/// A parameter in a query.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub name: &'static str,
    /// The type of its value.
    pub kind: ParameterKind,
    /// The call makes no sense without it.
    pub required: bool,
    pub about: &'static str,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum ParameterKind {
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words, with commas between.
    Words(&'static [&'static str]),
    Flag,
    /// A number from 0.
    Number {
        most: u64,
    },
}

/// The account, which every call takes.
pub const ACCOUNT: Param = Param {
    name: "account",
    kind: ParameterKind::Text,
    required: false,
    about: "The account; the first one without it",
};

pub struct Route {
    /// Its method; all but GET change something.
    pub method: Method,
    /// Its path, with names for the values in it.
    pub path: &'static str,
    /// Its name in the OpenAPI document.
    pub id: &'static str,
    pub summary: &'static str,
    /// The parameters in the query, without the account.
    pub query: &'static [Param],
    /// The schema of its body, if it takes one.
    pub body: Option<&'static str>,
    /// The status of an answer.
    pub status: u16,
    /// The schema of the answer.
    pub answer: &'static str,
    /// The statuses of errors that it has beside those that every call has.
    pub errors: &'static [u16],
    /// How it is carried out.
    pub run: RouteHandler,
}

impl Route {
    /// All parameters that it takes in the query.
    pub fn params(&self) -> impl Iterator<Item = &'static Param> {
        self.query.iter().chain([&ACCOUNT])
    }
}

/// How a call is carried out.
#[derive(Clone, Copy)]
pub enum RouteHandler {
    /// As one request of `api/control`.
    Ask {
        ask: fn(&ApiCall) -> Result<ControlRequest, ApiFailure>,
        /// The JSON of its answer.
        tell: fn(&ApiCall, ControlAnswer) -> Value,
    },
    Document,
    /// Replaces all data: by a saved state, or by nothing.
    Replace {
        ask: fn(&ApiCall) -> Result<ControlRequest, ApiFailure>,
        /// The JSON of its answer.
        tell: fn(&ApiCall, ControlAnswer) -> Value,
    },
    Gate,
    /// Waits until requests wait at a gate.
    WaitAtGate,
    /// Lets requests of a gate go.
    ReleaseGate,
    /// Lets one request go.
    ReleaseRequest,
    /// Closes a handle by force.
    CloseHandle,
    /// The stream of events.
    Events,
    /// Opens a file and keeps it open.
    Hold,
    Holds,
    Release,
}

const SHARE: Param = Param {
    name: "share",
    kind: ParameterKind::Text,
    required: false,
    about: "The share; the only one without it",
};
const PATH: Param = Param {
    name: "path",
    kind: ParameterKind::Text,
    required: false,
    about: "A path in the share",
};

const fn ask(ask: fn(&ApiCall) -> Result<ControlRequest, ApiFailure>) -> RouteHandler {
    RouteHandler::Ask { ask, tell: looks::plain }
}

pub static ROUTES: [Route; 36] = [
    Route {
        method: Method::GET,
        path: "/api/v1/openapi.json",
        id: "document",
        summary: "This document",
        query: &[],
        body: None,
        status: 200,
        answer: "Document",
        errors: &[],
        run: RouteHandler::Document,
    },
    Route {
        method: Method::GET,
        path: "/api/v1/status",
        id: "status",
        summary: "What is served, and where",
        query: &[],
        body: None,
        status: 200,
        answer: "Status",
        errors: &[],
        run: RouteHandler::Ask { ask: looks::status, tell: looks::told_status },
    },
    Route {
        method: Method::GET,
        path: "/api/v1/connection",
        id: "connection",
        summary: "How an SDK connects to the services",
        query: &[],
        body: None,
        status: 200,
        answer: "Connection",
        errors: &[],
        run: ask(looks::connection),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/handles",
        id: "handles",
        summary: "Who has which file open",
        query: &[
            SHARE,
            PATH,
            Param {
                name: "recursive",
                kind: ParameterKind::Flag,
                required: false,
                about: "Also handles below the path",
            },
        ],
        body: None,
        status: 200,
        answer: "Handles",
        errors: &[409],
        run: ask(looks::handles),
    },
    Route {
        method: Method::DELETE,
        path: "/api/v1/handles/{handle}",
        id: "closeHandle",
        summary: "Closes a handle by force",
        query: &[SHARE],
        body: None,
        status: 200,
        answer: "Closed",
        errors: &[],
        run: RouteHandler::CloseHandle,
    },
    Route {
        method: Method::GET,
        path: "/api/v1/holds",
        id: "holds",
        summary: "Files that clients of the API hold open",
        query: &[],
        body: None,
        status: 200,
        answer: "Holds",
        errors: &[],
        run: RouteHandler::Holds,
    },
    Route {
        method: Method::POST,
        path: "/api/v1/holds",
        id: "hold",
        summary: "Opens a file and holds it open",
        query: &[],
        body: Some("NewHold"),
        status: 201,
        answer: "Held",
        errors: &[409],
        run: RouteHandler::Hold,
    },
    Route {
        method: Method::DELETE,
        path: "/api/v1/holds/{handle}",
        id: "release",
        summary: "Ends a hold",
        query: &[SHARE],
        body: None,
        status: 200,
        answer: "Released",
        errors: &[],
        run: RouteHandler::Release,
    },
    Route {
        method: Method::GET,
        path: "/api/v1/why",
        id: "why",
        summary: "What stands in the way of a file or another object, and who changed it",
        query: &[looks::ABOUT],
        body: None,
        status: 200,
        answer: "Why",
        errors: &[409],
        run: ask(looks::why),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/history",
        id: "history",
        summary: "The latest changes, oldest first",
        query: &[looks::OBJECT],
        body: None,
        status: 200,
        answer: "History",
        errors: &[],
        run: ask(looks::history),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/clock",
        id: "clock",
        summary: "The clock of the server",
        query: &[],
        body: None,
        status: 200,
        answer: "Clock",
        errors: &[],
        run: ask(bench::clock),
    },
    Route {
        method: Method::POST,
        path: "/api/v1/clock",
        id: "turnClock",
        summary: "Turns the clock forward, stops it or lets it run",
        query: &[],
        body: Some("ClockTurn"),
        status: 200,
        answer: "Clock",
        errors: &[],
        run: ask(bench::turn_clock),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/gates",
        id: "gates",
        summary: "Gates, and the requests that wait at them",
        query: &[],
        body: None,
        status: 200,
        answer: "Gates",
        errors: &[],
        run: ask(bench::gates),
    },
    Route {
        method: Method::POST,
        path: "/api/v1/gates",
        id: "addGate",
        summary: "Adds a gate: matching requests stop there",
        query: &[],
        body: Some("NewGate"),
        status: 201,
        answer: "GateAdded",
        errors: &[],
        run: RouteHandler::Ask { ask: bench::add_gate, tell: bench::gate_added },
    },
    Route {
        method: Method::DELETE,
        path: "/api/v1/gates",
        id: "removeGates",
        summary: "Removes all gates; the requests that wait go on",
        query: &[],
        body: None,
        status: 200,
        answer: "Removed",
        errors: &[],
        run: RouteHandler::Ask { ask: bench::remove_gates, tell: bench::removed },
    },
    Route {
        method: Method::GET,
        path: "/api/v1/gates/{id}",
        id: "gate",
        summary: "One gate",
        query: &[],
        body: None,
        status: 200,
        answer: "Gate",
        errors: &[],
        run: RouteHandler::Gate,
    },
    Route {
        method: Method::DELETE,
        path: "/api/v1/gates/{id}",
        id: "removeGate",
        summary: "Removes a gate; the requests that wait there go on",
        query: &[],
        body: None,
        status: 200,
        answer: "Removed",
        errors: &[],
        run: RouteHandler::Ask { ask: bench::remove_gate, tell: bench::removed },
    },
    Route {
        method: Method::GET,
        path: "/api/v1/gates/{id}/wait",
        id: "waitAtGate",
        summary: "Waits until a number of requests wait at a gate",
        query: &[bench::COUNT, bench::TIMEOUT],
        body: None,
        status: 200,
        answer: "Waiting",
        errors: &[408],
        run: RouteHandler::WaitAtGate,
    },
    Route {
        method: Method::POST,
        path: "/api/v1/gates/{id}/release",
        id: "releaseGate",
        summary: "Releases the requests of a gate, or the first N",
        query: &[],
        body: Some("ReleaseCount"),
        status: 200,
        answer: "Went",
        errors: &[],
        run: RouteHandler::ReleaseGate,
    },
    Route {
        method: Method::POST,
        path: "/api/v1/requests/{id}/release",
        id: "releaseRequest",
        summary: "Lets one request that waits at a gate go",
        query: &[],
        body: Some("Nothing"),
        status: 200,
        answer: "Went",
        errors: &[],
        run: RouteHandler::ReleaseRequest,
    },
    Route {
        method: Method::GET,
        path: "/api/v1/faults",
        id: "faults",
        summary: "Faults that requests meet",
        query: &[],
        body: None,
        status: 200,
        answer: "Faults",
        errors: &[],
        run: ask(bench::faults),
    },
    Route {
        method: Method::POST,
        path: "/api/v1/faults",
        id: "addFault",
        summary: "Adds a fault for matching requests",
        query: &[],
        body: Some("NewFault"),
        status: 201,
        answer: "FaultAdded",
        errors: &[],
        run: RouteHandler::Ask { ask: bench::add_fault, tell: bench::fault_added },
    },
    Route {
        method: Method::DELETE,
        path: "/api/v1/faults",
        id: "removeFaults",
        summary: "Removes all faults",
        query: &[],
        body: None,
        status: 200,
        answer: "Removed",
        errors: &[],
        run: RouteHandler::Ask { ask: bench::remove_faults, tell: bench::removed },
    },
    Route {
        method: Method::DELETE,
        path: "/api/v1/faults/{id}",
        id: "removeFault",
        summary: "Removes a fault",
        query: &[],
        body: None,
        status: 200,
        answer: "Removed",
        errors: &[],
        run: RouteHandler::Ask { ask: bench::remove_fault, tell: bench::removed },
    },
    Route {
        method: Method::GET,
        path: events::PATH,
        id: "events",
        summary: "What happens, all services in one order: a page, or with `Accept: \
                  text/event-stream` as server-sent events",
        query: &events::PARAMS,
        body: None,
        status: 200,
        answer: "Events",
        errors: &[],
        run: RouteHandler::Events,
    },
    Route {
        method: Method::GET,
        path: "/api/v1/locks",
        id: "locks",
        summary: "Byte-range locks and their holders",
        query: &[SHARE, PATH],
        body: None,
        status: 200,
        answer: "Locks",
        errors: &[409],
        run: ask(looks::locks),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/pending",
        id: "pending",
        summary: "Files that are delete pending, with the handles that keep them",
        query: &[],
        body: None,
        status: 200,
        answer: "Pending",
        errors: &[],
        run: ask(looks::pending),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/leases",
        id: "leases",
        summary: "Leases in force, of shares, files, containers and blobs",
        query: &[],
        body: None,
        status: 200,
        answer: "Leases",
        errors: &[],
        run: ask(looks::leases),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/messages",
        id: "messages",
        summary: "Messages that no Get returns yet",
        query: &[Param {
            name: "queue",
            kind: ParameterKind::Text,
            required: false,
            about: "Of this queue alone",
        }],
        body: None,
        status: 200,
        answer: "Messages",
        errors: &[],
        run: ask(looks::messages),
    },
    Route {
        method: Method::POST,
        path: "/api/v1/undelete",
        id: "undelete",
        summary: "Takes the delete-pending mark from a file",
        query: &[],
        body: Some("FileAt"),
        status: 200,
        answer: "Undeleted",
        errors: &[409],
        run: ask(looks::undelete),
    },
    Route {
        method: Method::POST,
        path: "/api/v1/leases/break",
        id: "breakLease",
        summary: "Ends the lease of a file, share, blob or container",
        query: &[],
        body: Some("LeaseBreak"),
        status: 200,
        answer: "LeaseBroken",
        errors: &[409],
        run: ask(looks::break_lease),
    },
    Route {
        method: Method::GET,
        path: "/api/v1/states",
        id: "states",
        summary: "States that were saved",
        query: &[],
        body: None,
        status: 200,
        answer: "States",
        errors: &[409],
        run: RouteHandler::Ask { ask: states::list, tell: looks::plain },
    },
    Route {
        method: Method::PUT,
        path: "/api/v1/states/{name}",
        id: "saveState",
        summary: "Saves all data under a name",
        query: &[],
        body: Some("Nothing"),
        status: 200,
        answer: "State",
        errors: &[409],
        run: RouteHandler::Ask { ask: states::save, tell: states::saved },
    },
    Route {
        method: Method::DELETE,
        path: "/api/v1/states/{name}",
        id: "deleteState",
        summary: "Deletes a saved state",
        query: &[],
        body: None,
        status: 200,
        answer: "StateDeleted",
        errors: &[409],
        run: RouteHandler::Ask { ask: states::delete, tell: states::deleted },
    },
    Route {
        method: Method::POST,
        path: "/api/v1/states/{name}/restore",
        id: "restoreState",
        summary: "Replaces all data by a saved state",
        query: &[],
        body: Some("Nothing"),
        status: 200,
        answer: "StateRestored",
        errors: &[409],
        run: RouteHandler::Replace { ask: states::restore, tell: states::restored },
    },
    Route {
        method: Method::POST,
        path: "/api/v1/reset",
        id: "reset",
        summary: "Removes all data, gates, faults and holds; the clock shows the system's time",
        query: &[],
        body: Some("Nothing"),
        status: 200,
        answer: "ResetDone",
        errors: &[409],
        run: RouteHandler::Replace { ask: states::reset, tell: states::was_reset },
    },
];
