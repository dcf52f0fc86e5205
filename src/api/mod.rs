//! The control surface of a server: one HTTP API on the socket that commands ask and on the admin
//! address, which has the page, metrics and health too.
//!
//! ```text
//!   server          the listeners: connections and their bounds
//!   site            which path is answered by what
//!   guard           who may ask: Host, Origin, token, the name of the client
//!   body            answers: JSON, text, streams
//!   calls           /api/v1: the table of calls, and how they are read and answered
//!   control         what the calls mean
//!   client          the asking end of the socket
//!   page            / and /page/: files inside the program
//!   metrics         /metrics: what is counted as it happens, and how all of it is written down
//!   engine_metrics  metrics that are read from the engine at each scrape
//! ```
//!
//! What a request of the API does is decided in [`control`]. Front ends do not know of this module:
//! they report to an observer, and `server/` passes the reports on to [`Metrics`].

#![allow(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    clippy::unused_async,
    reason = "the functions of the table of calls have one shape"
)]

mod body;
pub mod calls;
mod client;
pub mod control;
mod engine_metrics;
mod guard;
mod metrics;
mod page;
mod server;
mod site;
#[cfg(test)]
mod tests;

pub use calls::{BODY_MAX, FOLLOWERS_MAX, HOLD_TIME_MAX, HOLDS_MAX, WAIT_MAX, WAITS_MAX};
pub use client::{ANSWER_MAX, AnswerLines, ApiClient, ClientError};
pub use guard::Token;
pub use metrics::Metrics;
pub use server::{AdminOptions, ApiServer, CONNECTIONS_MAX};
