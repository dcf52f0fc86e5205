//! The commands of an exploration as processes: each in a group of its own, which ends with it.
//!
//! A client is this program first: it says that it starts, waits until it may, and becomes the
//! command with the same process ID, so that the server sees it from its first instruction on.

use std::env;
use std::io::{self, PipeReader, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::api::{ApiClient, TellClient};

/// The variable that SDKs and tools read.
const CONNECTION: &str = "AZURE_STORAGE_CONNECTION_STRING";
/// The most that is kept of what a command prints.
const OUTPUT_MAX: usize = 64 << 10;
/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// How long the rest of its output may take once it has ended.
const OUTPUT_WAIT: Duration = Duration::from_secs(1);

/// Whether a signal asked this command to end.
static STOPPED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Has the signals that end a program end the search first.
pub fn end_with_signals() -> Result<()> {
    let stopped = STOPPED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(stopped)).context("registering for signals")?;
    }
    Ok(())
}

/// Ends the command if a signal asked for that.
pub fn check_not_stopped() -> Result<()> {
    if STOPPED.get().is_some_and(|stopped| stopped.load(Ordering::Relaxed)) {
        bail!("interrupted: the data is as before, and no client is left");
    }
    Ok(())
}

/// Becomes a client of an exploration.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct ExploreClient {
    control: PathBuf,
    id: u64,
    run: u64,
    name: String,
    command: String,
}

impl ExploreClient {
    pub fn run(&self) -> Result<ExitCode> {
        let pid = Some(std::process::id());
        let started = TellClient { pid, ..told(self.id, self.run, &self.name, "started") };
        ApiClient::new(&self.control).ask(&started)?;
        Err(shell(&self.command).exec()).context("starting a shell")
    }
}

fn told(id: u64, run: u64, name: &str, state: &str) -> TellClient {
    let (name, state) = (name.to_owned(), state.to_owned());
    TellClient { id, run, name, state, pid: None, threads: Vec::new() }
}

fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell
}

/// A command that runs. It ends, with all that it started, when dropped.
pub struct Running {
    child: Child,
    output: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// What became of a command.
pub struct Ended {
    status: ExitStatus,
    pub output: String,
}

impl Ended {
    /// Whether the shell found no such program, or must not run it.
    pub fn never_started(&self) -> bool {
        matches!(self.status.code(), Some(126 | 127))
    }

    /// Why it is a failure, if it is.
    pub fn failure(&self) -> Option<String> {
        if self.status.success() {
            return None;
        }
        Some(match self.status.signal() {
            Some(signal) => format!("was ended by signal {signal}"),
            None => format!("exited with {}", self.status.code().unwrap_or_default()),
        })
    }
}

/// Runs a command to its end.
pub fn run_alone(command: &str, connection: &str, within: Duration) -> Result<Ended> {
    let running = Running::new(shell(command), connection)?;
    let end = Instant::now() + within;
    while !running.has_ended() {
        check_not_stopped()?;
        if Instant::now() > end {
            bail!("{command}: it did not end within {within:?}; --within gives it more time");
        }
        thread::sleep(LOOK);
    }
    running.end()
}

impl Running {
    /// Starts a client, which begins when the server says so, and is told to the server when it
    /// has ended.
    pub fn client(
        control: &Path,
        id: u64,
        run: u64,
        name: &str,
        command: &str,
        connection: &str,
    ) -> Result<Self> {
        let mut start = Command::new(env::current_exe().context("the path of this program")?);
        start.arg("explore-client").arg(control);
        start.args([id.to_string(), run.to_string()]).args(["--", name, command]);
        let running = Self::new(start, connection)?;
        let (process, server) = (running.group(), ApiClient::new(control));
        let finished = told(id, run, name, "finished");
        thread::spawn(move || {
            // Either way the client is no more, and nobody is told of a search that has ended.
            let _ = waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            let _ = server.ask(&finished);
        });
        Ok(running)
    }

    fn new(mut command: Command, connection: &str) -> Result<Self> {
        let (mut from, to) = io::pipe().context("a pipe for the output")?;
        command.env(CONNECTION, connection).stdin(Stdio::null()).process_group(0);
        command.stdout(to.try_clone().context("a pipe for the output")?).stderr(to);
        let child = command.spawn().context("starting a command")?;
        // It has the writing ends of this process, which would keep the pipe open.
        drop(command);
        let output = Arc::default();
        let kept = Arc::clone(&output);
        let reader = thread::spawn(move || keep(&mut from, &kept));
        Ok(Self { child, output, reader })
    }

    /// Whether the command has ended. Its process stays until [`Self::end`], and with it the number
    /// of its group.
    pub fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.group()), look), Ok(None))
    }

    /// What became of a command that has ended.
    pub fn end(mut self) -> Result<Ended> {
        // What it has left would keep the pipe open.
        self.kill();
        let status = self.child.wait().context("waiting for a command")?;
        let end = Instant::now() + OUTPUT_WAIT;
        while !self.reader.is_finished() && Instant::now() < end {
            thread::sleep(LOOK);
        }
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Ended { status, output: String::from_utf8_lossy(&output).into_owned() })
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn kill(&self) {
        // All of it may have ended.
        let _ = kill_process_group(self.group(), Signal::KILL);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

/// Keeps the first part of an output, and reads the rest.
fn keep(from: &mut PipeReader, kept: &Mutex<Vec<u8>>) {
    let mut part = [0; 4096];
    while let Ok(length) = from.read(&mut part)
        && length > 0
    {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = OUTPUT_MAX.saturating_sub(kept.len());
        kept.extend(&part[..length.min(room)]);
    }
}
