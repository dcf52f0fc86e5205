//! The command line around a running server: `serve` and all that asks it, on real mounts.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod admin;
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod directory;
mod fixture;
mod holds;
mod lacking;
mod machine;
mod programs;
mod run;
mod serve;
mod shares;
mod start;
mod stop;
#[cfg(feature = "tls")]
mod tls;
mod user;
