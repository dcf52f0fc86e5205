//! The `latchfs` command, and how its allocator returns memory.

#![allow(unsafe_code, reason = "the options of the allocator have no safe call")]

use std::process::ExitCode;

/// Allocations of at least this many bytes, such as the bodies of requests, return to the system
/// when they are freed. Without it glibc raises its own bound with each that is freed, and keeps
/// later ones.
#[cfg(target_env = "gnu")]
const RETURNED_BYTES: i32 = 1 << 20;
/// Free bytes at the end of the heap that the allocator keeps.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: i32 = 8 << 20;

#[cfg(not(feature = "shuttle"))]
fn main() -> ExitCode {
    #[cfg(target_env = "gnu")]
    // SAFETY: no other thread runs yet, and both options take any number.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, RETURNED_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
    }
    latchfs::cli::run()
}

/// The locks of such a build work in schedules alone; see `latchfs::sync`.
#[cfg(feature = "shuttle")]
fn main() -> ExitCode {
    eprintln!("latchfs: built for the schedule tests (feature `shuttle`), and serves nothing");
    ExitCode::from(2)
}
