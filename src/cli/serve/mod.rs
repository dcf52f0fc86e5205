//! `latchfs serve`: the options of a server, its start screen, and waiting for its end.
//!
//! ```text
//!   data         where the data is, and what it starts with
//!   behaviour    how mounts behave; blobs: how blobs and copies do
//!   listen       where services listen, and who is let in; azurite: Azurite's options
//!   observe      events, metrics, the log
//!   screen       what the user sees when the server is ready; ready: what scripts read
//!   registry     the running servers of this user
//!   daemon       returning to the shell once the server is ready
//! ```
//!
//! The server itself is in `server/`.

mod azurite;
mod behaviour;
mod daemon;
mod data;
mod listen;
mod observe;
mod ready;
mod registry;
mod screen;

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::{Context, Result};
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::input;
use super::logs::LogFormat;
use super::out::{self, Paint, usage};
use super::progress::Moving;
use crate::api::SOCKET_NAME;
use crate::disk::HIDDEN;
use crate::file::service::shares::Control;
use crate::rules::address::ObjectAddress;
use crate::server::{Data, EventOptions, MountPoint, Server, ServerOptions, Stop};
use azurite::Azurite;
pub use azurite::HEADING;
use behaviour::{Behaviour, Blobs};
use data::DataArgs;
use listen::Listen;
use observe::{Admin, EventArgs, Recording, Which};
pub use registry::{RunningServer, running};
use screen::Screen;
pub use screen::{page_with_token, shell_quoted};

/// Where data is kept unless the user says.
pub const DATA_DIR: &str = "latchfs-data";

/// Where shares are mounted unless the user says.
pub const MOUNT_DIR: &str = "latchfs-mnt";

/// The control socket of a data directory.
pub fn control_of(data: &Path) -> PathBuf {
    data.join(HIDDEN).join(SOCKET_NAME)
}

/// Serve File, Blob, Queue and Table, and mount shares
///
/// Runs in the foreground until Ctrl-C or `latchfs stop`; without a service over HTTP also until
/// its last mount ends. Shares are directories below the data directory, made if missing. If no
/// mount can be made and none was named, the services are served without one.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs serve --share docs --mount docs=/mnt/docs --daemon")]
pub struct Serve {
    #[command(flatten)]
    data: DataArgs,

    /// Mount a share [default: on ./latchfs-mnt]
    #[arg(long = "mount", value_name = "[ACCOUNT/]NAME=DIR", env = "LATCHFS_MOUNTS")]
    #[arg(value_delimiter = ',', help_heading = "Mounts")]
    mounts: Vec<MountPoint>,

    /// Where shares are mounted unless --mount names them: a directory, made if missing
    #[arg(long, value_name = "DIR", default_value = MOUNT_DIR, env = "LATCHFS_MOUNT_DIR")]
    #[arg(help_heading = "Mounts", hide_short_help = true)]
    mount_dir: PathBuf,

    /// Mount nothing
    #[arg(long, conflicts_with = "mounts", env = "LATCHFS_NO_MOUNT", help_heading = "Mounts")]
    no_mount: bool,

    /// Stop the server when its last mount is unmounted
    #[arg(long, conflicts_with = "no_mount", env = "LATCHFS_UNTIL_UNMOUNTED")]
    #[arg(help_heading = "Mounts", hide_short_help = true)]
    until_unmounted: bool,

    #[command(flatten)]
    blobs: Blobs,

    #[command(flatten)]
    azurite: Azurite,

    #[command(flatten)]
    pub service: ServiceArgs,
}

impl Serve {
    /// Serves until the server is stopped.
    pub fn run(&self) -> Result<ExitCode> {
        self.service.run(self.until_unmounted, Some(&self.azurite), |options| {
            self.azurite.apply(options)?;
            let nothing = options.listen.addresses().is_empty() && self.no_mount;
            if nothing {
                usage!("nothing to serve: without a service over HTTP a mount is needed");
            }
            options.data = if self.data.in_memory {
                Data::Memory
            } else {
                Data::Directory(self.data.directory.clone())
            };
            options.reset = self.data.reset;
            self.blobs.apply(options);
            (options.shares, options.account_shares) = self.data.named_shares();
            options.seeds.clone_from(&self.data.seeds);
            options.loads.clone_from(&self.data.loads);
            let containers = self.data.containers.iter();
            options
                .objects
                .extend(containers.map(|name| listen::of_account(name, ObjectAddress::Container)));
            options.mounts.clone_from(&self.mounts);
            let mount = !self.no_mount && !self.azurite.is_on();
            options.default_mount = mount.then(|| self.mount_dir.clone());
            Ok(())
        })
    }

    /// The file that the log is written to, with debug messages; none for standard error.
    pub fn debug_file(&self) -> Option<&Path> {
        self.azurite.debug.as_deref()
    }
}

/// A server as such, whatever it serves
#[derive(Debug, Args)]
pub struct ServiceArgs {
    #[command(flatten)]
    pub mounts: Behaviour,

    #[command(flatten)]
    listen: Listen,

    #[command(flatten)]
    events: EventArgs,

    #[command(flatten)]
    process: Process,

    #[command(flatten)]
    admin: Admin,
}

/// How the server runs
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
struct Process {
    /// Serve in the background; return once ready
    #[arg(long, env = "LATCHFS_DAEMON")]
    daemon: bool,

    /// Stop when standard input, a pipe, is closed: the server ends with the process that holds it
    #[arg(long, conflicts_with = "daemon", env = "LATCHFS_UNTIL_STDIN_CLOSES")]
    #[arg(hide_short_help = true)]
    until_stdin_closes: bool,

    /// Write JSON for scripts to this file once ready
    #[arg(long, value_name = "FILE", env = "LATCHFS_READY_FILE")]
    ready_file: Option<PathBuf>,

    /// Print the content of the ready file instead of the start screen
    #[arg(long, env = "LATCHFS_JSON", hide_short_help = true)]
    json: bool,
}

impl ServiceArgs {
    /// The format of its log.
    pub fn log_format(&self) -> LogFormat {
        self.admin.log_format
    }

    fn options(&self) -> Result<ServerOptions> {
        let listen = self.listen.options()?;
        Ok(ServerOptions {
            share: self.mounts.share_options(),
            mount: self.mounts.mount_options(),
            admin: self.admin.address(&listen.addresses),
            objects: self.listen.objects(),
            listen,
            events: EventOptions {
                all: self.events.events == Which::All,
                no_requests: self.events.journal == Recording::Off,
                file: self.events.event_log.clone(),
            },
            ..ServerOptions::default()
        })
    }

    /// Serves with the options that `prepare` completes, until a stop. A server without a service
    /// over HTTP, or one that is there for its mounts alone, ends with its last mount.
    pub fn run(
        &self,
        until_unmounted: bool,
        azurite: Option<&Azurite>,
        prepare: impl FnOnce(&mut ServerOptions) -> Result<()>,
    ) -> Result<ExitCode> {
        if self.process.daemon && !daemon::is_child() {
            return daemon::launch();
        }
        if daemon::is_child() {
            daemon::leave_terminal();
        }
        if let Some(file) = &self.process.ready_file {
            remove_stale(file)?;
        }
        let (stop, stopped) = channel();
        stop_on_signals(stop.clone())?;
        if self.process.until_stdin_closes {
            stop_on_end_of_input(stop.clone())?;
        }
        let mut options = self.options()?;
        prepare(&mut options)?;
        let mut moving: Option<(String, Moving)> = None;
        let server = Server::start_with(&options, stop, &mut |share, done| {
            if moving.as_ref().is_none_or(|(name, _)| name != share) {
                let line = Moving::new(format!("Filling share {share}"));
                moving = Some((share.to_owned(), line));
            }
            if let Some((_, line)) = &moving {
                line.at(done.files_done, done.bytes_done);
            }
            if stopped.try_recv().is_ok() { Control::Cancel } else { Control::Continue }
        })?;
        drop(moving);
        let here = std::env::current_dir().ok();
        let started_in = here.filter(|_| matches!(options.data, Data::Memory));
        let _entry = registry::enter(&server.control(), started_in.as_deref());
        let notes = azurite.map(|azurite| azurite.notes(&options.data)).unwrap_or_default();
        self.announce(&server, notes, azurite.and_then(|azurite| azurite.lines(&server)))?;
        let ended = wait(&stopped, &server, until_unmounted || !server.listens());
        ready::tell("STOPPING=1");
        if let Some(file) = &self.process.ready_file {
            ready::remove(file);
        }
        drop(server);
        ended
    }

    /// Tells everyone who waits that the server is ready. `lines` or JSON are printed instead of
    /// the start screen; the notes go to standard error then.
    fn announce(&self, server: &Server, more: Vec<String>, lines: Option<String>) -> Result<()> {
        let content = ready::content(server);
        let child = daemon::is_child();
        let control = server.control();
        let end = ending(&control, !server.mounts().is_empty());
        let credentials = server.credentials();
        let accounts: Vec<_> = credentials.iter().map(|one| one.name().to_owned()).collect();
        let mut notes = server.notes().to_vec();
        notes.extend(self.listen.notes());
        notes.extend(more);
        let terminal = if child { daemon::paint().is_on() } else { io::stdout().is_terminal() };
        let screen = Screen {
            mounts: &server.mounts(),
            share: server.shares().first().map_or("", String::as_str),
            control: &control,
            data: server.data(),
            endpoints: &server.endpoints(),
            smb: screen::shown_smb(server, terminal),
            accounts: &accounts,
            connection_string: screen::shown_string(server, terminal),
            ca_file: server.ca_file(),
            admin: screen::shown_page(server, terminal),
            gives_tokens: server.identity().is_some(),
            outside: screen::outside(),
            notes: &notes,
            end: &end,
        };
        let paint = if child { daemon::paint() } else { Paint::of(&io::stdout()) };
        // Neither Azurite's lines nor JSON have a place for them.
        if lines.is_some() || self.process.json {
            for note in &notes {
                eprintln!("latchfs: {note}");
            }
        }
        let text = match lines {
            _ if self.process.json => format!("{content}\n"),
            Some(lines) => lines,
            None => screen.text(paint),
        };
        if !child {
            // Nobody may be reading: that is no reason to stop.
            drop(out::print(&text));
        }
        // After the screen, for scripts that wait for the file and then read the screen; before a
        // command in the background returns, for scripts that wait for the command.
        if let Some(file) = &self.process.ready_file {
            ready::write(file, &content).with_context(|| format!("writing {}", file.display()))?;
        }
        ready::tell("READY=1");
        if child { daemon::ready(&text, &server.log_file()) } else { Ok(()) }
    }
}

/// Removes the ready file of an earlier server, so that it is not taken for that of this one. A
/// file that cannot be made is told before the server starts.
fn remove_stale(file: &Path) -> Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        usage!("--ready-file {}: {} is not a directory", file.display(), folder.display());
    }
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing the old {}", file.display()))
        }
        _ => Ok(()),
    }
}

/// How to end this server, for the user.
fn ending(control: &Path, mounted: bool) -> String {
    let does = if mounted { "unmounts and stops" } else { "stops" };
    if !daemon::is_child() {
        return format!("Ctrl-C {does}.");
    }
    let pid = std::process::id();
    let here = std::env::current_dir().unwrap_or_default();
    if control == control_of(&here.join(DATA_DIR)) {
        return format!("`latchfs stop` {does} the server (pid {pid}).");
    }
    format!("`latchfs stop --control {}` {does} the server (pid {pid}).", control.display())
}

fn wait(stopped: &Receiver<Stop>, server: &Server, until_unmounted: bool) -> Result<ExitCode> {
    loop {
        match stopped.recv().context("the server has no way to be stopped")? {
            Stop::Asked => return Ok(ExitCode::SUCCESS),
            Stop::MountEnded if server.forget_ended_mounts() => {}
            Stop::MountEnded | Stop::Unmounted if !until_unmounted => {
                log::info!("the last mount is gone; the services go on");
            }
            Stop::MountEnded | Stop::Unmounted => {
                log::info!("the last mount is gone");
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

/// Stops the server when the other end of standard input is closed, also by the death of its
/// holder.
fn stop_on_end_of_input(stop: Sender<Stop>) -> Result<()> {
    let input = input::pipe().context(
        "--until-stdin-closes: standard input is neither a pipe nor a socket; start the server \
         with one and keep its other end open",
    )?;
    input::watch(input, move || {
        log::info!("standard input was closed");
        // The receiver goes with the process.
        let _ = stop.send(Stop::Asked);
    })?;
    Ok(())
}

/// Taken before anything is mounted, so that no signal finds mounts and nobody to unmount them.
fn stop_on_signals(stop: Sender<Stop>) -> Result<()> {
    // A limit on file sizes (`ulimit -f`) then refuses a write, and does not end the server.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("latchfs-signals".into()).spawn(move || {
        for (count, signal) in signals.forever().enumerate() {
            if count > 0 {
                // Whatever the first one waits for: with the process go its mounts.
                eprintln!("latchfs: stopped at once by a second signal");
                std::process::exit(128 + signal);
            }
            // The receiver goes with the process.
            let _ = stop.send(Stop::Asked);
        }
    })?;
    Ok(())
}
