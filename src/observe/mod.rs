//! For those who look after a server: metrics and health, on a listener of their own.
//!
//! ```text
//!   metrics   what is counted as it happens, and how all of it is written down
//!   held      what is read from the engine when somebody looks
//!   server    /metrics and /healthz
//! ```
//!
//! Front ends do not know of this: they tell an observer of theirs, which whoever puts the server
//! together passes on to [`Metrics`].

mod held;
mod metrics;
mod server;

pub use metrics::Metrics;
pub use server::{AdminOptions, AdminServer, CONNECTIONS_MAX};
