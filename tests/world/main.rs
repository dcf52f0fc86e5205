//! Real programs and clients, the page in a browser, the packages in `clients/`, the documentation
//! and the scripts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod clients;
mod docs;
mod packages;
mod page;
mod programs;
mod scripts;
#[cfg(feature = "smb")]
mod smb;
