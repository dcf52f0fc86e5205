//! `latchfs serve`: shares, their mounts and the control socket, until somebody says stop.
//!
//! ```text
//!   data        where the shares are, and what they start with; memory: data that goes at the end
//!   places      where they are mounted; behaviour: how mounts behave
//!   listen      the REST listener; tls: its certificate
//!   events      what is noted in the log of events, and the file it is written to
//!   admin       metrics, health, and the log
//!   host        what is served, and how it starts and ends
//!   screen      what the user sees when all is up; ready: what scripts read
//!   daemon      returning to the shell when the mounts are usable
//!   notify      telling systemd
//! ```

mod admin;
mod behaviour;
mod daemon;
mod data;
mod events;
mod host;
mod listen;
mod memory;
mod notify;
mod places;
mod ready;
mod screen;
mod tls;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::BoolishValueParser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::logs::LogFormat;
use super::out::{self, Paint};
use crate::control::{SOCKET_NAME, Server};
use crate::engine::Engine;
use crate::store::root::HIDDEN;
use admin::{Admin, Counting};
use behaviour::Behaviour;
use data::Data;
use events::Events;
use host::Host;
use listen::{Listen, Listening};
use memory::Memory;
pub use places::Places;
use screen::Screen;

/// Where data is kept unless the user says.
pub const DATA_DIR: &str = "latchfs-data";

/// Where shares are mounted unless the user says.
pub const MOUNT_DIR: &str = "latchfs-mnt";

/// The control socket of a data directory.
pub fn control_of(data: &Path) -> PathBuf {
    data.join(HIDDEN).join(SOCKET_NAME)
}

/// Serve shares and mount them
///
/// Runs in the foreground until Ctrl-C, `latchfs stop`, or the end of its last mount; then
/// everything is unmounted. Shares are sub-directories of the data directory, made if missing.
/// Where no mount can be made and none was named, REST is served alone.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs serve --share docs --mount docs=/mnt/docs --daemon")]
pub struct Serve {
    #[command(flatten)]
    data: Data,

    /// Mount a share there [default: ./latchfs-mnt]
    #[arg(long = "mount", value_name = "NAME=DIR", env = "LATCHFS_MOUNTS", value_delimiter = ',')]
    #[arg(value_parser = mount_pair, help_heading = "Mounts")]
    mounts: Vec<(String, PathBuf)>,

    /// Mount nothing
    #[arg(long, conflicts_with = "mounts", env = "LATCHFS_NO_MOUNT", help_heading = "Mounts")]
    #[arg(value_parser = BoolishValueParser::new())]
    no_mount: bool,

    #[command(flatten)]
    pub service: Service,
}

impl Serve {
    /// Serves until somebody says stop.
    pub fn run(&self) -> Result<ExitCode> {
        self.service.run(|stopped| {
            let named = self.mounts.iter().map(|(name, _)| name);
            let opened = self.data.open(self.service.mounts.share_options(), named, stopped)?;
            let places = if self.no_mount {
                Places::default()
            } else if self.mounts.is_empty() {
                Places::by_default(&opened.names)?
            } else {
                Places::named(&self.mounts)?
            };
            Ok(Prepared {
                memory: opened.memory,
                places,
                engine: opened.engine,
                data: opened.place,
                notes: opened.notes,
            })
        })
    }
}

/// What is to be served.
pub struct Prepared {
    pub places: Places,
    pub engine: Arc<Engine>,
    /// Where the data is, for people.
    pub data: String,
    /// What they should know.
    pub notes: Vec<String>,
    /// Holds the data, where that is in memory; goes last.
    pub memory: Option<Memory>,
}

/// A server as such, whatever it serves
#[derive(Debug, Args)]
pub struct Service {
    #[command(flatten)]
    pub mounts: Behaviour,

    #[command(flatten)]
    listen: Listen,

    #[command(flatten)]
    events: Events,

    #[command(flatten)]
    process: Process,

    #[command(flatten)]
    admin: Admin,
}

/// How the server runs
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
struct Process {
    /// Serve in the background; return when all is usable
    #[arg(long, env = "LATCHFS_DAEMON", value_parser = BoolishValueParser::new())]
    daemon: bool,

    /// Write JSON for scripts here when all is usable
    #[arg(long, value_name = "FILE", env = "LATCHFS_READY_FILE")]
    ready_file: Option<PathBuf>,

    /// Print what the ready file holds, not the start screen
    #[arg(long, env = "LATCHFS_JSON", value_parser = BoolishValueParser::new())]
    #[arg(hide_short_help = true)]
    json: bool,
}

impl Service {
    /// What lines of its log look like.
    pub fn log_format(&self) -> LogFormat {
        self.admin.log_format
    }

    /// Serves what `prepare` puts together until somebody says stop.
    pub fn run(
        &self,
        prepare: impl FnOnce(&Receiver<Stop>) -> Result<Prepared>,
    ) -> Result<ExitCode> {
        if self.process.daemon && !daemon::is_child() {
            return daemon::launch();
        }
        if daemon::is_child() {
            daemon::leave_terminal();
        }
        let (stop, stopped) = channel();
        stop_on_signals(stop.clone())?;
        // Bound in this order so that, however it ends, the data in memory goes last.
        let Prepared { memory: _memory, mut places, engine, data, mut notes } = prepare(&stopped)?;
        // Before anything is mounted, perhaps on the folder that is to have the file.
        let file = self.events.open(&engine.options().events)?;
        let counting = self.admin.count(&engine, self.listen.expose)?;
        let observer = counting.as_ref().map(Counting::observer);
        let listening = self.listen.start(&engine, &engine.folder(), observer)?;
        places.asked |= listening.is_none();
        let host =
            Host::start(engine, &places, &self.mounts, self.listen.error_names.into(), stop)?;
        let file = file.map(|file| file.start(host.serving())).transpose()?;
        if host.mounted().is_empty() {
            // A directory that looks like a mount would only mislead.
            places = Places::default();
        }
        host.listens(listening.as_ref());
        let rest = listening.as_ref().map(Listening::addr);
        let admin = counting.map(|counting| counting.show(host.serving(), rest)).transpose()?;
        let control = Server::start(&host.control(), host.serving())?;
        notes.extend(listening.iter().flat_map(Listening::notes));
        notes.extend(host.notes());
        let shown = admin.as_ref().map(|admin| format!("http://{}", admin.addr()));
        self.announce(&host, listening.as_ref(), shown.as_deref(), &data, &notes)?;
        let served = wait(&stopped, &host);
        notify::tell("STOPPING=1");
        if let Some(file) = &self.process.ready_file {
            drop(fs::remove_file(file));
        }
        // The mounts first: whoever asked for the stop is told by the end of its connection.
        drop((admin, listening));
        host.unmount_all();
        drop(places);
        drop(control);
        // Last: all that happened is in it.
        drop(file);
        served
    }

    /// Tells everyone who waits that the mounts are usable.
    fn announce(
        &self,
        host: &Host,
        listening: Option<&Listening>,
        admin: Option<&str>,
        data: &str,
        notes: &[String],
    ) -> Result<()> {
        let told = ready::told(host, listening, admin);
        let child = daemon::is_child();
        let (mounts, share, control) = (host.mounted(), host.first_share(), host.control());
        let end = ending(&control);
        let screen = Screen {
            mounts: &mounts,
            share: &share,
            control: &control,
            data,
            listening,
            admin,
            notes,
            end: &end,
        };
        let paint = if child { daemon::paint() } else { Paint::of(&io::stdout()) };
        let text = if self.process.json { format!("{told}\n") } else { screen.text(paint) };
        if !child {
            // Nobody may be reading: that is no reason to stop.
            drop(out::print(&text));
        }
        // After the screen, for those who wait for the file and then look at it; before a command
        // in the background returns, for those who wait for that.
        if let Some(file) = &self.process.ready_file {
            ready::write(file, &told).with_context(|| format!("writing {}", file.display()))?;
        }
        notify::tell("READY=1");
        if child { daemon::ready(&text, &host.log_file()) } else { Ok(()) }
    }
}

/// How to end this server, for the user.
fn ending(control: &Path) -> String {
    if !daemon::is_child() {
        return "Ctrl-C unmounts and stops.".to_owned();
    }
    let pid = std::process::id();
    let here = std::env::current_dir().unwrap_or_default();
    if control == control_of(&here.join(DATA_DIR)) {
        return format!("`latchfs stop` unmounts and stops (pid {pid}).");
    }
    format!("`latchfs stop --control {}` unmounts and stops (pid {pid}).", control.display())
}

/// What ends a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A signal, or a request.
    Asked,
    /// The last mount is gone.
    Unmounted,
    /// A mount has ended, by whomever it was unmounted.
    MountEnded,
}

fn wait(stopped: &Receiver<Stop>, host: &Host) -> Result<ExitCode> {
    loop {
        match stopped.recv().context("nobody is left who could say stop")? {
            Stop::Asked => return Ok(ExitCode::SUCCESS),
            Stop::MountEnded if host.forget_ended() => {}
            Stop::MountEnded | Stop::Unmounted => {
                log::info!("the last mount is gone");
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

/// Taken before anything is mounted, so that no signal finds mounts and nobody to unmount them.
fn stop_on_signals(stop: Sender<Stop>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("latchfs-signals".into()).spawn(move || {
        for _ in signals.forever() {
            // The receiver goes with the process.
            let _ = stop.send(Stop::Asked);
        }
    })?;
    Ok(())
}

fn mount_pair(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, dir)) if !name.is_empty() && !dir.is_empty() => {
            Ok((name.to_owned(), dir.into()))
        }
        _ => Err("a share and a directory, as in docs=/mnt/docs".into()),
    }
}
