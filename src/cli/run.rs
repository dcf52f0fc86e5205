//! `latchfs run`: a command all of whose opens have a share mode, with no change to it.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use rustix::process::{Pid, Signal, WaitOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::EXIT_FAILED;
use super::locate::{AccountOf, Socket, Where, real_path};
use crate::api::{ApiClient, RunStarted, StartRun};

/// Exit status: the command was not found, as a shell has it.
const EXIT_NOT_FOUND: u8 = 127;

/// Run a command whose opens on the mounts have a share mode
///
/// The share mode applies to the command and to every process that it starts, directly or not,
/// until the command ends. Exits as the command does, with 128 and the signal's number if one
/// killed it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs run --share none -- cp latchfs-mnt/a.txt /tmp")]
pub struct RunCommand {
    /// Share mode of its opens, what others may do meanwhile: letters r, w, d, or none
    #[arg(long, value_name = "MODE", env = "LATCHFS_SHARE")]
    share: String,

    /// On this mount alone [default: on all of the server's]
    #[arg(long, value_name = "PATH", env = "LATCHFS_MOUNT")]
    mount: Option<PathBuf>,

    #[command(flatten)]
    server: Socket,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<std::ffi::OsString>,
}

impl RunCommand {
    pub fn run(&self) -> Result<ExitCode> {
        let of = AccountOf { server: self.server.clone(), account: None };
        let server = Where { of, share_name: None };
        let mount = self.mount.as_deref().map(real_path).transpose()?;
        let control = match &self.mount {
            Some(mount) => server.target(mount)?.control,
            None => server.socket()?,
        };
        // The policy is the tree's of this process, and ends with this answer.
        let start = StartRun { share_mode: self.share.clone(), mount };
        let mut policy = ApiClient::new(&control).open(&start)?;
        let RunStarted { .. } = policy.first()?;
        // What the tree orphans stays ours, so that it is still covered.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .context("becoming the parent of orphans")?;
        let (program, arguments) =
            self.command.split_first().ok_or_else(|| anyhow!("no command"))?;
        // Taken before the command starts, so that none is lost; it gets the default ones back.
        let signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
        let child = match Command::new(program).args(arguments).spawn() {
            Ok(child) => child,
            Err(error) => {
                eprintln!("latchfs: {}: {error}", program.display());
                let missing = error.kind() == std::io::ErrorKind::NotFound;
                return Ok(ExitCode::from(if missing { EXIT_NOT_FOUND } else { EXIT_FAILED }));
            }
        };
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.context("the command has no process id")?;
        pass_on(signals, pid);
        let status = wait_for(pid)?;
        drop(policy);
        Ok(ExitCode::from(exit_code(status)))
    }
}

/// Passes on what was sent to us alone. What a terminal sends, the command gets from it.
fn pass_on(mut signals: Signals, child: Pid) {
    thread::spawn(move || {
        for signal in signals.forever() {
            let signal = match signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                _ => continue,
            };
            // It may have ended just now.
            let _ = rustix::process::kill_process(child, signal);
        }
    });
}

/// Waits for the command, and buries the orphans that end before it.
fn wait_for(child: Pid) -> Result<ExitStatus> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => {
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno).context("waiting for the command"),
        }
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(EXIT_FAILED)
}
