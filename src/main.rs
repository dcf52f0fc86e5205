//! The `latchfs` command.

use std::process::ExitCode;

#[cfg(not(feature = "shuttle"))]
fn main() -> ExitCode {
    latchfs::cli::run()
}

/// The locks of such a build work in schedules alone; see `latchfs::sync`.
#[cfg(feature = "shuttle")]
fn main() -> ExitCode {
    eprintln!("latchfs: built for the schedule tests (feature `shuttle`), and serves nothing");
    ExitCode::from(2)
}
