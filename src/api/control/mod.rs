//! The requests that a running server answers: to the command line over the control socket, and to
//! clients of the HTTP API (`api/calls`), in one vocabulary.
//!
//! The socket carries one JSON object a line each way, and is open to its owner and root only. The
//! opens, process-tree policies and script handles of a connection end with the connection, so that
//! a client that is killed leaves nothing behind.
//!
//! ```text
//!   protocol     requests and answers; rows: what answers are made of; wire: their lines
//!   refusal      what a refusal is called here
//!   events       which rows of the journal a request is given
//!   report       opens as people are told of them: program names, process ids
//!   socket       where the socket is, who may enter
//!   serving      what the server offers, as this module sees it
//!   server       connections, and their bounds
//!   connection   one connection: its requests, and what it holds
//!   holds        opens that a connection keeps
//!   held         locks, pending files, leases and hidden messages, one by one
//!   address      blob:CONTAINER/NAME and its like
//!   objects      blobs, queues, messages and entities as people are told of them
//!   object_lease  leases of blobs and containers
//!   controls     the clock, gates and faults; request_path: which requests those mean
//!   states       the state of the server as a whole
//!   account      requests about shares as a whole, their leases and snapshots
//!   client       the other end
//! ```

mod account;
pub mod address;
mod client;
mod connection;
pub mod controls;
pub mod events;
pub mod held;
mod holds;
pub mod object_lease;
pub mod objects;
pub mod protocol;
mod refusal;
mod report;
mod request_path;
mod rows;
mod server;
mod serving;
pub(super) mod socket;
pub mod states;
#[cfg(test)]
mod tests;
mod wire;

pub use client::{ANSWER_MAX, ClientError, ControlClient};
pub use connection::ControlConnection;
pub use holds::{HOLDS_MAX, LOCKS_MAX};
pub use protocol::{ControlAnswer, ControlRequest};
pub use refusal::{FailureKind, RefusalKind};
pub use report::HANDLES_MAX;
pub use server::{CONNECTIONS_MAX, LINE_MAX, LineConnections};
pub use serving::{About, KnownOperation, MountedAt, Serving};
pub use socket::{SOCKET_NAME, SocketError, is_served};
pub use wire::{ReceivedRequest, read_request};
