//! The control surface of a server: one HTTP API on the socket that commands ask and on the admin
//! address, which has the page, metrics and health too.
//!
//! ```text
//!   server          the listeners: connections and their bounds
//!   socket          where the control socket is, who may enter
//!   site            which path is answered by what
//!   guard           who may ask: Host, Origin, token, the name of the client
//!   body            answers: JSON, text, streams
//!   page            / and /page/: files inside the program
//!   metrics         /metrics
//!   client          the asking end of the socket
//!
//!   routes          /api/v1: the table of calls, with the types of request and answer
//!   openapi         the OpenAPI document, made of the table
//!   calls           how a call is carried out, and how many at a time
//!   call            one call: path, query, body
//!   failure         a call that was not carried out
//!   serving         what the server offers, as this module sees it
//!   session         one request: its account, its shares, who asks
//!
//!   status          what is served, and where
//!   files           handles, why, undelete
//!   hold, holds     opens that a client keeps
//!   held            locks, pending files and hidden messages, one by one
//!   leases          leases of files, shares, blobs and containers
//!   address         SHARE:/PATH and its like
//!   objects         blobs, queues, messages and entities as people are told of them
//!   stored          what is stored, one level at a time
//!   controls        the clock, gates and faults
//!   explorations    tests that are run under every order of their clients' requests
//!   clients         names of clients, marks between tests
//!   report          findings, and ignore rules
//!   states          the state of the server as a whole
//!   identity        bearer tokens, also as App Service gives them to a managed identity
//!   load            a load file for a running server
//!   shares          shares as a whole, their snapshots
//!   log, events     which rows of the journal a request is given, by page or as a stream
//!   owner           calls of the control socket alone
//! ```
//!
//! Front ends do not know of this module: they report to an observer, and `server/` passes the
//! reports on to [`Metrics`].

#![allow(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    clippy::unused_async,
    reason = "the functions of the table of calls have one shape"
)]

mod address;
mod body;
mod call;
mod calls;
mod client;
mod clients;
mod controls;
mod events;
mod explorations;
mod failure;
mod files;
mod guard;
mod held;
mod hold;
mod holds;
mod identity;
mod leases;
mod load;
mod log;
mod metrics;
mod objects;
mod openapi;
mod owner;
mod page;
mod report;
mod routes;
mod server;
mod serving;
mod session;
mod shares;
mod site;
mod socket;
mod states;
mod status;
mod stored;
#[cfg(test)]
mod tests;

pub use address::*;
pub use call::Call;
pub use calls::{BODY_MAX, WAIT_MAX, WAITS_MAX, read_any};
pub use client::{ANSWER_MAX, AnswerLines, ApiClient, ClientError};
pub use clients::*;
pub use controls::*;
pub use events::{FOLLOWERS_MAX, GetEvents};
pub use explorations::*;
pub use failure::{ApiFailure, ErrorAnswer, ErrorDetail, RefusalDetail, RefusalKind};
pub use files::*;
pub use guard::Token;
pub use held::*;
pub use hold::*;
pub use holds::{HOLD_TIME_MAX, HOLDS_MAX, HoldList, HoldState, Release, Released};
pub use identity::{GetToken, IDENTITY_PATH, Identity, TokenGiven};
pub use leases::*;
pub use load::*;
pub use log::{GetLog, StreamRequest, events_of, listed};
pub use metrics::{Metrics, SmbCounts};
pub use objects::*;
pub use owner::*;
pub use report::*;
pub use routes::{
    DeleteState, EndExploration, GetClients, GetClock, GetConnection, GetExploration,
    GetExplorations, GetFaults, GetGate, GetGates, GetHolds, GetIgnores, GetLeases, GetPending,
    GetStates, GetStatus, RemoveClient, RemoveFault, RemoveFaults, RemoveGate, RemoveGates,
    RemoveIgnore,
};
pub use server::{AdminOptions, ApiServer, CONNECTIONS_MAX};
pub use serving::*;
pub use session::Session;
pub use shares::*;
pub use socket::{SOCKET_NAME, SocketError, is_served};
pub use states::*;
pub use status::*;
pub use stored::*;
