//! The command line around a running server: `serve` and all that asks it, on real mounts.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "../common/mod.rs"]
mod common;
mod fixture;
mod holds;
mod programs;
mod run;
mod serve;
mod stop;
#[cfg(feature = "tls")]
mod tls;
mod user;
