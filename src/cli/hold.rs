//! `latchfs hold`: a second client for tests and shell scripts, that can also ask for what
//! `open(2)` cannot.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Error, Result, bail};
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::locate::{Where, refused};
use super::time::duration;
use super::{EXIT_CLOSED, input, out};
use crate::api::{
    ApiClient, ClientError, HoldOptions, HoldRow, Release, Released, disposition, read_access,
    read_share_mode,
};

/// Hold a file open with an access and a share mode
///
/// Prints the handle as a line of JSON when the open is granted, and holds it until --for runs
/// out, standard input closes (if it is a pipe), or a signal ends it; when it exits, the handle is
/// closed. Exits 3 if the handle is closed by force, 16 if another handle is in the way.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  latchfs hold latchfs-mnt/a.txt --access rw --share r --for 30s"
)]
pub struct HoldCommand {
    #[arg(help = "The file: a path on a mount, or SHARE:/PATH")]
    path: PathBuf,

    /// Access: letters r, w, d, or none
    #[arg(long, default_value = "r", env = "LATCHFS_ACCESS")]
    access: String,

    /// Share mode, what others may do meanwhile: letters r, w, d, or none
    #[arg(long, value_name = "MODE", default_value = "none", env = "LATCHFS_SHARE")]
    share: String,

    /// For how long: 30s, 500ms, 5m
    #[arg(long = "for", value_name = "TIME", value_parser = duration, env = "LATCHFS_FOR")]
    time: Option<Duration>,

    /// Mark the file for deletion when this open closes; needs access d
    #[arg(long)]
    delete_on_close: bool,

    /// open, create, open-if, overwrite, overwrite-if or supersede
    #[arg(long, default_value = "open")]
    disposition: String,

    /// Errors as JSON too; the handle always is
    #[arg(long, env = "LATCHFS_JSON")]
    json: bool,

    #[command(flatten)]
    server: Where,
}

/// The end of a hold.
enum End {
    /// A signal, or the end of standard input.
    Wanted,
    /// The server ended the answer.
    ByServer,
}

impl HoldCommand {
    pub fn run(&self) -> Result<ExitCode> {
        let access = read_access(&self.access).map_err(Error::msg)?;
        let share_mode = read_share_mode(&self.share).map_err(Error::msg)?;
        let disposition = disposition::read(&self.disposition).map_err(Error::msg)?;
        // Before the open, so that no signal finds an open and nobody to close it.
        let (ends, end) = channel();
        watch_signals(ends.clone())?;
        let target = self.server.target(&self.path)?;
        let server = target.client();
        let wanted = HoldOptions {
            share: target.share_name,
            access,
            share_mode,
            disposition,
            delete_on_close: self.delete_on_close,
            while_connected: true,
            ..HoldOptions::new("", target.path)
        };
        let mut answer = match server.open(&wanted) {
            Ok(answer) => answer,
            Err(error) => return refused(self.path.display(), error.into()),
        };
        let held: HoldRow = answer.first()?;
        out::print(&(serde_json::to_string(&held)? + "\n"))?;
        if let Some(input) = input::pipe() {
            let ends = ends.clone();
            input::watch(input, move || {
                // The receiver goes with the process.
                let _ = ends.send(End::Wanted);
            })?;
        }
        thread::spawn(move || {
            answer.wait_for_end();
            let _ = ends.send(End::ByServer);
        });
        self.wait(&server, &held, &end)
    }

    /// Waits for an end, then closes: when this returns, the server has closed the handle.
    fn wait(&self, server: &ApiClient, held: &HoldRow, end: &Receiver<End>) -> Result<ExitCode> {
        let ended = match self.time {
            // An error says that the time is over.
            Some(time) => end.recv_timeout(time).unwrap_or(End::Wanted),
            None => end.recv()?,
        };
        let HoldRow { handle, share_name, .. } = held;
        let release = Release { handle: *handle, share: Some(share_name.clone()) };
        match (ended, server.ask(&release)) {
            (End::Wanted, Ok(Released { open: true })) => Ok(ExitCode::SUCCESS),
            // A hold that the server ended is gone with its answer.
            (_, Ok(_)) => Ok(closed_by_force(*handle)),
            (_, Err(ClientError::Failed(failed))) if failed.kind == "not_found" => {
                Ok(closed_by_force(*handle))
            }
            (_, Err(ClientError::Gone | ClientError::Io(_) | ClientError::NoServer { .. })) => {
                bail!("the server has stopped, and with it the hold")
            }
            (_, Err(error)) => Err(error.into()),
        }
    }
}

fn closed_by_force(handle: u64) -> ExitCode {
    out::complain(&format!("handle {handle} was closed by force"), None);
    ExitCode::from(EXIT_CLOSED)
}

/// Tells of the signals that end a command.
fn watch_signals(ends: Sender<End>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        for _ in signals.forever() {
            // The receiver goes with the process.
            let _ = ends.send(End::Wanted);
        }
    });
    Ok(())
}
