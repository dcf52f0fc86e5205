//! The command line: what the user asks for, and which module does it.

mod account;
mod completions;
mod connection;
mod doctor;
mod events;
mod handles;
mod help;
mod hold;
mod lease;
mod locate;
mod logs;
mod marks;
mod mount;
mod out;
mod play;
mod progress;
#[cfg(test)]
mod reference;
mod run;
mod sas;
mod serve;
mod server;
mod shares;
mod snapshot;
mod table;
mod time;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Exit status: the answer is no, or a check found a difference.
pub const EXIT_DIFFERENT: u8 = 1;

/// Exit status: the command could not be carried out.
pub const EXIT_FAILED: u8 = 2;

/// Exit status: somebody else holds what was asked for. The number is that of `EBUSY`.
pub const EXIT_BUSY: u8 = 16;

/// A file share on your own machine that behaves like Azure Files
#[derive(Debug, Parser)]
#[command(name = "latchfs", version, after_help = EXAMPLES, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "\
Example:
  latchfs serve --daemon && echo hello > latchfs-mnt/a.txt
  latchfs hold latchfs-mnt/a.txt --share none --for 30s &
  cat latchfs-mnt/a.txt          # Device or resource busy
  latchfs why latchfs-mnt/a.txt  # who holds it

Exit status: 0 done, 1 the answer is no, 2 it could not be done, 16 somebody else holds it.
Every option can also be set by a variable, which its help names.
Without a command: `latchfs serve`, with ./latchfs-data mounted on ./latchfs-mnt.";

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Mount(mount::MountDirectory),
    Unmount(server::Unmount),
    Status(server::Status),
    Stop(server::Stop),
    Hold(hold::Hold),
    Handles(handles::Handles),
    CloseHandle(handles::CloseHandle),
    Undelete(marks::Undelete),
    Why(marks::Why),
    Events(events::Events),
    Run(run::Run),
    Play(play::Play),
    Shares(shares::Shares),
    Lease(lease::Lease),
    Snapshot(snapshot::Snapshot),
    ConnectionString(connection::ConnectionString),
    Sas(sas::Sas),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
}

impl Command {
    /// What its log looks like.
    fn log_format(&self) -> logs::LogFormat {
        match self {
            Self::Serve(serve) => serve.service.log_format(),
            Self::Mount(mount) => mount.service.log_format(),
            _ => logs::LogFormat::default(),
        }
    }
}

/// Reads the command line, does what it says, and gives the exit status.
pub fn run() -> ExitCode {
    let command = match read(std::env::args_os()).command {
        Some(command) => command,
        // The variables count all the same.
        None => match read(["latchfs".into(), "serve".into()]).command {
            Some(command) => command,
            None => unreachable!("the arguments name a command"),
        },
    };
    logs::start(command.log_format());
    let done = match command {
        Command::Serve(serve) => serve.run(),
        Command::Mount(mount) => mount.run(),
        Command::Unmount(unmount) => unmount.run(),
        Command::Status(status) => status.run(),
        Command::Stop(stop) => stop.run(),
        Command::Hold(hold) => hold.run(),
        Command::Handles(handles) => handles.run(),
        Command::CloseHandle(close) => close.run(),
        Command::Undelete(undelete) => undelete.run(),
        Command::Why(why) => why.run(),
        Command::Events(events) => events.run(),
        Command::Run(run) => run.run(),
        Command::Play(play) => play.run(),
        Command::Shares(shares) => shares.run(),
        Command::Lease(lease) => lease.run(),
        Command::Snapshot(snapshot) => snapshot.run(),
        Command::ConnectionString(connection) => connection.run(),
        Command::Sas(sas) => sas.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Completions(completions) => completions.run(),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            let name = out::Paint::of(&io::stderr()).bad("latchfs:");
            eprintln!("{name} {error:#}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// Reads a command line. What is wrong with it is said with a suggestion, and is the end.
fn read(arguments: impl IntoIterator<Item = OsString>) -> Cli {
    let matches = help::laid_out(Cli::command()).get_matches_from(arguments);
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}
