//! The rules and the engine: recorded answers, models, schedules, and operations without a
//! front end. Also the checks on the source itself.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod account;
mod dirs;
mod files;
mod model;
mod replay;
#[cfg(feature = "shuttle")]
mod schedules;
mod skips;
mod tidy;
