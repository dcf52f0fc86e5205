//! Load and crashes: tests that take many seconds each.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod durability;
mod load;
mod soak;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// These tests load the machine: each takes this first, so that they run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
