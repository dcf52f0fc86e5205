//! `latchfs hold`: a second client for tests and shell scripts, that can also ask for what
//! `open(2)` cannot.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::BoolishValueParser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::locate::{Where, answered, refused, unexpected};
use super::time::duration;
use super::{EXIT_CLOSED, input, out};
use crate::api::control::{ClientError, ControlAnswer, ControlClient, ControlRequest, protocol};

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
    #[arg(long, env = "LATCHFS_JSON", value_parser = BoolishValueParser::new())]
    json: bool,

    #[command(flatten)]
    server: Where,
}

/// How long one look at the hold takes while nothing happens: a bound on how late an end is
/// noticed.
const LOOK: Duration = Duration::from_millis(50);

impl HoldCommand {
    /// Holds it.
    pub fn run(&self) -> Result<ExitCode> {
        // Before the open, so that no signal finds an open and nobody to close it.
        let (ends, end) = channel();
        watch_signals(ends.clone())?;
        let target = self.server.target(&self.path)?;
        let mut server = target.connect()?;
        let request = ControlRequest::Hold(protocol::HoldRequest {
            share_name: target.share_name,
            path: target.path,
            access: self.access.clone(),
            share_mode: self.share.clone(),
            disposition: Some(self.disposition.clone()),
            delete_on_close: self.delete_on_close,
            locks: Vec::new(),
        });
        let held = match answered(server.ask(&request)?)? {
            ControlAnswer::Held(held) => held,
            other => return refused(self.path.display(), &other),
        };
        out::print(&(serde_json::to_string(&held)? + "\n"))?;
        if let Some(input) = input::pipe() {
            input::watch(input, move || {
                // The receiver goes with the process.
                let _ = ends.send(());
            })?;
        }
        self.wait(&mut server, held.handle, &end)
    }

    /// Waits for an end, then closes: when this returns, the server has closed the handle.
    fn wait(
        &self,
        server: &mut ControlClient,
        handle: u64,
        end: &Receiver<()>,
    ) -> Result<ExitCode> {
        let began = Instant::now();
        while end.try_recv().is_err() {
            let left = self.time.map_or(LOOK, |time| time.saturating_sub(began.elapsed()));
            if left.is_zero() {
                break;
            }
            let wait_ms = u64::try_from(left.min(LOOK).as_millis())?;
            if !is_open(server, &ControlRequest::Holding { handle, wait_ms })? {
                return Ok(closed_by_force(handle));
            }
        }
        if is_open(server, &ControlRequest::Release { handle })? {
            return Ok(ExitCode::SUCCESS);
        }
        Ok(closed_by_force(handle))
    }
}

fn closed_by_force(handle: u64) -> ExitCode {
    out::complain(&format!("handle {handle} was closed by force"), None);
    ExitCode::from(EXIT_CLOSED)
}

fn is_open(server: &mut ControlClient, request: &ControlRequest) -> Result<bool> {
    let answer = match server.ask(request) {
        Err(ClientError::Gone | ClientError::Io(_)) => {
            bail!("the server has stopped, and with it the hold")
        }
        answer => answered(answer?)?,
    };
    match answer {
        ControlAnswer::Holding { open } => Ok(open),
        other => Err(unexpected(&other)),
    }
}

/// Tells of the signals that end a command.
fn watch_signals(ends: Sender<()>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        for _ in signals.forever() {
            // The receiver goes with the process.
            let _ = ends.send(());
        }
    });
    Ok(())
}
