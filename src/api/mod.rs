//! The control surface of a server: the socket that commands ask, and the admin address with the
//! page, the HTTP API, metrics and health.
//!
//! ```text
//!   server          the listeners: connections and their bounds
//!   site            which path is answered by what
//!   guard           who may ask: Host, Origin, token, the name of the client
//!   body            answers: JSON, text, streams
//!   calls           /api/v1: HTTP to requests of `control`, answers to JSON
//!   control         what is asked of a running server, and the socket that commands ask it on
//!   page            / and /page/: files inside the program
//!   metrics         /metrics: what is counted as it happens, and how all of it is written down
//!   engine_metrics  metrics that are read from the engine at each scrape
//! ```
//!
//! What a request of the API does is decided in [`control`]. Front ends do not know of this module:
//! they report to an observer, and `server/` passes the reports on to [`Metrics`].

#![allow(
    clippy::result_large_err,
    reason = "the error of a step is the answer itself, once a request"
)]

mod body;
mod calls;
pub mod control;
mod engine_metrics;
mod guard;
mod metrics;
mod page;
mod server;
mod site;

pub use calls::{BODY_MAX, FOLLOWERS_MAX, HOLD_TIME_MAX, HOLDS_MAX, WAIT_MAX, WAITS_MAX};
pub use guard::Token;
pub use metrics::Metrics;
pub use server::{AdminOptions, ApiServer, CONNECTIONS_MAX};
