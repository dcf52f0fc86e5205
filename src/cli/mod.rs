//! The command line: what the user asks for, and which module does it.

mod play;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Exit status: a check found a difference.
pub const EXIT_DIFFERENT: u8 = 1;

/// Exit status: the command could not be carried out.
pub const EXIT_FAILED: u8 = 2;

/// A file share on your own machine that behaves like Azure Files
///
/// One table of opens, share modes, byte-range locks, leases and delete-pending marks. For now
/// it is exercised by scripts; the mount and the REST listener are to come.
#[derive(Debug, Parser)]
#[command(name = "latchfs", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Example:
  latchfs play scenario.jsonl

Exit status: 0 done, 1 a check found a difference, 2 the command could not be carried out.";

#[derive(Debug, Subcommand)]
enum Command {
    Play(play::Play),
}

/// Reads the command line, does what it says, and gives the exit status.
pub fn run() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let done = match Cli::parse().command {
        Command::Play(play) => play.run(),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("latchfs: {error:#}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}
