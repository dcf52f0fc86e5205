//! The `latchfs` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    latchfs::cli::run()
}
