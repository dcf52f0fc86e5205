//! The command line: the commands, their options, and the module of each.
//!
//! ```text
//!   serve          `serve`: the options of a server, its start screen, its end
//!   mount          `mount`: one existing directory as a share
//!   server         `status`, `unmount`, `stop`
//!   health         `health`
//!   doctor         `doctor`: what this machine lacks
//!   shares         `shares`: list, create, delete
//!   snapshot       `snapshot`: list, create, delete
//!   lease          `lease`: show, break
//!   handles        `handles`, `close-handle`
//!   hold           `hold`: a second client
//!   marks          `undelete`, `why`
//!   run            `run`: a command whose opens have a share mode
//!   storage        `ls`, `mk`, `put`, `get`, `rm`
//!   history        `history`, and `why` of blobs, queues, messages and entities
//!   events         `events`
//!   clock          `clock`
//!   gate           `gate`
//!   fault          `fault`
//!   matching       which requests a gate or a fault matches
//!   report         `report`
//!   explore        `explore`: programs in every order of their requests
//!   state          `state`: all data saved, restored, reset
//!   client         `client`: names of clients; `connection-string`
//!   load           `load`: a load file
//!   sas            `sas`
//!   token          `token`
//!   azurite_names  Azurite's command names
//!   locate         finds the server that a command asks, and the file that it names
//!   input          the end of standard input as a signal
//!   out            text and JSON on standard output, errors on standard error
//!   table          rows in columns, or separated by tabs
//!   time           durations as people write them
//!   progress       a line that shows the progress of a long operation
//!   logs           the log of the program
//!   help           the layout of help; `completions`
//!   variables      refuses misspelt variables LATCHFS_*
//!   reference      docs/command-line.md, written by a test
//! ```

mod azurite_names;
mod client;
mod clock;
mod doctor;
mod events;
mod explore;
mod fault;
mod gate;
mod handles;
mod health;
mod help;
mod history;
mod hold;
mod input;
mod lease;
mod load;
mod locate;
mod logs;
mod marks;
mod matching;
mod mount;
mod out;
mod progress;
#[cfg(test)]
mod reference;
mod report;
mod run;
mod sas;
mod serve;
mod server;
mod shares;
mod snapshot;
mod state;
mod storage;
mod table;
mod time;
mod token;
mod variables;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

/// Exit status: the answer is no, or a check found a difference.
pub const EXIT_DIFFERENT: u8 = 1;

/// Exit status: the command could not be carried out.
pub const EXIT_FAILED: u8 = 2;

/// Exit status: what was held was closed by force.
pub const EXIT_CLOSED: u8 = 3;

/// Exit status: another client holds the object. The number is that of `EBUSY`.
pub const EXIT_BUSY: u8 = 16;

/// The name of the commands in their requests.
const AGENT: &str = concat!("latchfs-cli/", env!("CARGO_PKG_VERSION"));

/// Azure Storage on your own machine, built for testing concurrency
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
  cat latchfs-mnt/a.txt || latchfs why latchfs-mnt/a.txt  # Device or resource busy; who holds it
Exit status: 0 done, 1 the answer is no, 2 failed, 3 closed by force, 16 somebody else holds it.
Without a command, latchfs runs `serve`. Most options can also be set by a variable, such as
LATCHFS_DATA for --data: docs/configuration.md has them all. -V, --version: print the version.";

/// The commands, under the headings of the help and in its order; the program alone starts those
/// without a heading.
macro_rules! commands {
    (
        $($heading:literal { $($(#[$how:meta])? $name:ident($command:ty),)* })*
        hidden { $($own:ident($hidden:ty),)* }
    ) => {
        #[derive(Debug, Subcommand)]
        #[expect(clippy::large_enum_variant, reason = "there is one, and it is read once")]
        enum Command {
            $($($(#[$how])? $name($command),)*)*
            $($own($hidden),)*
        }

        impl Command {
            fn run(&self) -> anyhow::Result<ExitCode> {
                match self {
                    $($(Self::$name(command) => command.run(),)*)*
                    $(Self::$own(command) => command.run(),)*
                }
            }
        }

        /// Each heading of the help, and how many commands are under it.
        const HEADINGS: &[(&str, usize)] = &[$(($heading, [$(stringify!($name)),*].len()),)*];
    };
}

commands! {
    "Run" {
        Serve(serve::Serve),
        Mount(mount::MountDirectory),
        Unmount(server::Unmount),
        Stop(server::StopCommand),
        Health(health::Health),
        Doctor(doctor::Doctor),
        Completions(help::Completions),
    }
    "Look" {
        Status(server::StatusCommand),
        Handles(handles::Handles),
        Why(marks::WhyCommand),
        History(history::History),
        Events(events::EventsCommand),
        Report(report::ReportCommand),
    }
    "Hold and close" {
        Hold(hold::HoldCommand),
        Run(run::RunCommand),
        CloseHandle(handles::CloseHandle),
        #[command(subcommand)]
        Lease(lease::LeaseCommand),
        Undelete(marks::Undelete),
    }
    "Data" {
        Ls(storage::Ls),
        Mk(storage::Mk),
        Put(storage::Put),
        Get(storage::Get),
        Rm(storage::Rm),
        #[command(subcommand)]
        Shares(shares::Shares),
        #[command(subcommand)]
        Snapshot(snapshot::Snapshot),
        Load(load::LoadCommand),
        ConnectionString(client::ConnectionString),
        Sas(sas::Sas),
        Token(token::TokenCommand),
    }
    "Test bench" {
        Clock(clock::ClockCommand),
        #[command(subcommand)]
        Gate(gate::GateCommand),
        #[command(subcommand)]
        Fault(fault::FaultCommand),
        #[command(subcommand)]
        State(state::StateCommand),
        #[command(subcommand)]
        Client(client::ClientCommand),
        Explore(explore::Explore),
    }
    hidden {
        ExploreClient(explore::ExploreClient),
    }
}

impl Command {
    /// The file that its log is written to, with debug messages; none for standard error.
    fn debug_file(&self) -> Option<&Path> {
        if let Self::Serve(serve) = self { serve.debug_file() } else { None }
    }

    /// The form of the log.
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
    let Some(command) = read(std::env::args_os().collect()).command else {
        unreachable!("the arguments name a command")
    };
    if let Err(error) = logs::start(command.log_format(), command.debug_file()) {
        out::complain(&out::chain(&error), None);
        return ExitCode::from(EXIT_FAILED);
    }
    if let Err(error) = variables::check(&Cli::command()) {
        out::complain(&out::chain(&error), None);
        return ExitCode::from(EXIT_FAILED);
    }
    match command.run() {
        Ok(code) => code,
        Err(error) => {
            out::complain_of(&out::chain(&error), out::kind_of(&error));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// Reads a command line. What is wrong with it is said with a suggestion, and is the end.
fn read(given: Vec<OsString>) -> Cli {
    let mut command = help::laid_out(Cli::command());
    if let Some(usage) = azurite_names::usage(&given) {
        let about = "Serve Blob, Queue and Table as Azurite does";
        command = command.mut_subcommand("serve", |serve| serve.override_usage(usage).about(about));
    }
    let as_json = asks_for_json(&given);
    let location = given.iter().any(|argument| argument == "--location");
    let in_azurites_words = given.iter().any(|argument| argument == "--inMemoryPersistence");
    let arguments = with_command(given);
    let usage = usage_of(&mut command, &arguments);
    let matches = command.try_get_matches_from_mut(arguments);
    let matches = matches.unwrap_or_else(|error| exit(error, &usage, as_json));
    out::errors_as_json(wants_json(&matches));
    if let Some(("serve", serve)) = matches.subcommand()
        && [serve.value_source("directory"), serve.value_source("in_memory")]
            == [Some(ValueSource::CommandLine); 2]
    {
        let data = if location { "--location" } else { "--data" };
        let memory = if in_azurites_words { "--inMemoryPersistence" } else { "--in-memory" };
        let message = format!("{data} cannot be used with {memory}: choose one");
        exit(command.error(ErrorKind::ArgumentConflict, message), &usage, as_json);
    }
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| exit(error, &usage, as_json))
}

/// Whether errors of usage are wanted as JSON: by the option, or by its variable.
fn asks_for_json(given: &[OsString]) -> bool {
    let variable = std::env::var("LATCHFS_JSON").unwrap_or_default();
    let set = ["1", "y", "yes", "t", "true", "on"].contains(&variable.to_lowercase().as_str());
    set || given.iter().any(|argument| argument == "--json")
}

/// The usage of the command that the arguments name, as its help has it: the usage that clap makes
/// for an error shows options that a variable sets as if they had to be given.
fn usage_of(command: &mut clap::Command, arguments: &[OsString]) -> StyledStr {
    command.build();
    let mut named = command;
    for argument in arguments.iter().skip(1).filter_map(|argument| argument.to_str()) {
        if named.find_subcommand(argument).is_none() {
            break;
        }
        named = named.find_subcommand_mut(argument).expect("it was found just now");
    }
    named.render_usage()
}

/// Ends the command with an error of usage, or with its help. As JSON, an error is its first
/// paragraph: usage and suggestions are for people.
fn exit(mut error: clap::Error, usage: &StyledStr, as_json: bool) -> ! {
    if error.get(ContextKind::Usage).is_some() {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage.clone()));
    }
    if !as_json || !error.use_stderr() {
        error.exit();
    }
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first).trim();
    out::errors_as_json(true);
    out::complain_of(message, "usage");
    std::process::exit(error.exit_code());
}

/// The arguments, with `serve` before options that follow no command, `help COMMAND` as
/// `COMMAND --help`, and the names of Azurite's commands as what they stand for.
fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if let Some(replaced) = azurite_names::replaced(&arguments) {
        return replaced;
    }
    if arguments.get(1).is_some_and(|first| first == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
        return arguments;
    }
    let own = ["-h", "--help", "-V", "--version"];
    let first = arguments.get(1).map(|first| first.to_string_lossy().into_owned());
    if first.is_none_or(|first| first.starts_with('-') && !own.contains(&&*first)) {
        arguments.insert(1.min(arguments.len()), "serve".into());
    }
    arguments
}

/// Whether the command that was given has `--json`.
fn wants_json(matches: &ArgMatches) -> bool {
    if let Some((_, below)) = matches.subcommand() {
        return wants_json(below);
    }
    matches.try_get_one::<bool>("json").ok().flatten().is_some_and(|json| *json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_a_command_are_those_of_serve() {
        let with = |arguments: &[&str]| {
            let given = arguments.iter().map(OsString::from).collect();
            with_command(given).join(" ".as_ref()).into_string().unwrap()
        };
        assert_eq!(with(&["latchfs"]), "latchfs serve");
        assert_eq!(with(&["latchfs", "--in-memory"]), "latchfs serve --in-memory");
        assert_eq!(with(&["latchfs", "--help"]), "latchfs --help");
        assert_eq!(with(&["latchfs", "why", "a"]), "latchfs why a");
        assert_eq!(with(&["latchfs", "help", "why"]), "latchfs why --help");
        assert_eq!(with(&["latchfs", "help"]), "latchfs --help");
    }
}
