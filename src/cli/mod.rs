//! The command line: what the user asks for, and which module does it.

mod handles;
mod hold;
mod locate;
mod marks;
mod play;
mod run;
mod serve;
mod server;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Exit status: the answer is no, or a check found a difference.
pub const EXIT_DIFFERENT: u8 = 1;

/// Exit status: the command could not be carried out.
pub const EXIT_FAILED: u8 = 2;

/// Exit status: somebody else holds what was asked for. The number is that of `EBUSY`.
pub const EXIT_BUSY: u8 = 16;

/// A file share on your own machine that behaves like Azure Files
///
/// One table of opens, share modes, byte-range locks, leases and delete-pending marks, for every
/// program that uses the mount. Without a command: `latchfs serve`, with the data in
/// ./latchfs-data and the share mounted on ./latchfs-mnt.
#[derive(Debug, Parser)]
#[command(name = "latchfs", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "\
Example:
  latchfs serve --daemon
  echo hello > latchfs-mnt/a.txt
  latchfs hold latchfs-mnt/a.txt --share none --for 30s &
  cat latchfs-mnt/a.txt        # Device or resource busy
  latchfs why latchfs-mnt/a.txt

Exit status: 0 done; 1 the answer is no, or a check found a difference; 2 the command could not be
carried out; 16 somebody else holds the file (hold). `run` exits as its command does.
Every option can be set by a variable, which its help names.";

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Unmount(server::Unmount),
    Status(server::Status),
    Stop(server::Stop),
    Hold(hold::Hold),
    Handles(handles::Handles),
    CloseHandle(handles::CloseHandle),
    Undelete(marks::Undelete),
    Why(marks::Why),
    Run(run::Run),
    Play(play::Play),
}

/// Reads the command line, does what it says, and gives the exit status.
pub fn run() -> ExitCode {
    let log = env_logger::Env::default().default_filter_or("warn");
    env_logger::Builder::from_env(log).init();
    let command = match Cli::parse().command {
        Some(command) => command,
        None => Command::Serve(serve::Serve::by_default()),
    };
    let done = match command {
        Command::Serve(serve) => serve.run(),
        Command::Unmount(unmount) => unmount.run(),
        Command::Status(status) => status.run(),
        Command::Stop(stop) => stop.run(),
        Command::Hold(hold) => hold.run(),
        Command::Handles(handles) => handles.run(),
        Command::CloseHandle(close) => close.run(),
        Command::Undelete(undelete) => undelete.run(),
        Command::Why(why) => why.run(),
        Command::Run(run) => run.run(),
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
