//! The control socket: what the command line asks of a running server.
//!
//! One JSON object a line each way, over a unix socket that is its owner's alone. What a
//! connection holds (opens, process-tree policies, a script's handles) ends with the connection,
//! so that whoever is killed leaves nothing behind.
//!
//! ```text
//!   protocol     requests and answers
//!   refusal      what a refusal is called here
//!   events       the log of events as it travels
//!   report       opens as people are told of them: program names, process ids
//!   socket       where the socket is, who may enter
//!   serving      what the server offers, as this module sees it
//!   server       connections, and their bounds
//!   connection   one connection: its requests, and what it holds
//!   account      requests about shares as a whole, their leases and snapshots
//!   client       the other end
//! ```

mod account;
mod client;
mod connection;
pub mod events;
pub mod protocol;
mod refusal;
mod report;
mod server;
mod serving;
mod socket;
#[cfg(test)]
mod tests;

pub use client::{ANSWER_MAX, Client, ClientError};
pub use connection::HOLDS_MAX;
pub use protocol::{Answer, Request};
pub use refusal::RefusalKind;
pub use report::HANDLES_MAX;
pub use server::{CONNECTIONS_MAX, LINE_MAX, Server};
pub use serving::{MountedAt, Serving, Spelled, Steps};
pub use socket::{SOCKET_NAME, SocketError};
