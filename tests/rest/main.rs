//! The REST face from outside: real HTTP against a server in this process.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "../common/mod.rs"]
mod common;
mod conflicts;
mod copies;
mod directories;
mod elsewhere;
mod files;
mod fixture;
mod handles;
mod limits;
mod listener;
mod listing;
mod observed;
mod ranges;
mod service;
mod shares;
mod snapshots;
mod stalls;
mod structured;
#[cfg(feature = "tls")]
mod tls;
