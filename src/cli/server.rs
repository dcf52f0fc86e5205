//! `latchfs status`, `latchfs unmount` and `latchfs stop`: the server as a whole.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use super::clock;
use super::locate::{ServerByPath, ask, real_path};
use super::out::{Output, Paint};
use super::serve::page_with_token;
use crate::api::{
    self, ApiClient, ClientError, ClockState, GetStatus, ServerStatus, Stop, Stopping,
};
use crate::file::mount::{clear_dead, mounts};
use crate::rules::time::parse_iso;

/// How long `stop` waits for the server to end.
const STOP_WAIT: Duration = Duration::from_secs(30);

/// Unmount a share
///
/// Unmounting its last share stops a server of `latchfs mount`, and one of `latchfs serve` that has
/// no service over HTTP or was started with --until-unmounted. Any other server keeps running. A
/// mount whose server has died is removed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs unmount latchfs-mnt")]
pub struct Unmount {
    /// The mount point
    path: PathBuf,

    /// Unmount at once, even if in use; descriptors open for writing then fail with EIO
    #[arg(long)]
    lazy: bool,

    #[command(flatten)]
    output: Output,

    /// Control socket of the server [default: that of the mount]
    #[arg(long, value_name = "SOCKET", env = "LATCHFS_CONTROL")]
    control: Option<PathBuf>,
}

impl Unmount {
    pub fn run(&self) -> Result<ExitCode> {
        let path = real_path(&self.path)?;
        let mount = mounts::all().into_iter().rev().find(|mount| mount.path == path);
        let Some(origin) = mount.and_then(|mount| mount.origin()) else {
            bail!("{} is not a latchfs mount: `latchfs status` lists them", self.path.display());
        };
        let Some(control) = self.control.clone().or(origin.control) else {
            bail!("the server of {} is unknown: name it with --control", self.path.display());
        };
        let unmount = api::Unmount { path: path.clone(), lazy: self.lazy };
        match ApiClient::new(&control).ask(&unmount) {
            Ok(_) => {}
            Err(ClientError::NoServer { .. }) => clear(&path)?,
            Err(error) => return Err(error.into()),
        }
        self.output.show(&json!({ "unmounted": path.to_string_lossy() }), String::new)
    }
}

fn clear(path: &Path) -> Result<()> {
    clear_dead(path)?;
    if mounts::all().iter().any(|mount| mount.path == path) {
        bail!("{} is served, but its control socket is gone: umount it", path.display());
    }
    Ok(())
}

/// Show what a server serves
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs status --json")]
pub struct StatusCommand {
    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: ServerByPath,
}

impl StatusCommand {
    pub fn run(&self) -> Result<ExitCode> {
        let status = ask(&self.server.find()?, &GetStatus {})?;
        self.output.show(&status, || words(&status, Paint::of(&io::stdout())))
    }
}

fn words(status: &ServerStatus, paint: Paint) -> String {
    let head = format!("latchfs {}", status.version);
    let mut lines = vec![format!("{}, pid {}", paint.bold(&head), status.pid)];
    let several = status.accounts.len() > 1;
    let named = |account: &str, share: &str| {
        if several { format!("share \"{account}/{share}\"") } else { format!("share \"{share}\"") }
    };
    if several {
        lines.push(format!("accounts {}", status.accounts.join(", ")));
    }
    for share in &status.shares {
        let name = named(&share.account, &share.name);
        let files = if share.files_in_use == 1 { "file" } else { "files" };
        lines.push(format!("{name}: {} {files} in use", share.files_in_use));
    }
    for mount in &status.mounts {
        let path = paint.place(&mount.path.display().to_string());
        lines.push(format!("{} is mounted on {path}", named(&mount.account, &mount.share)));
    }
    for (service, endpoint) in &status.endpoints {
        lines.push(format!("{service} service on {}", paint.place(endpoint)));
    }
    if is_turned(&status.clock) {
        lines.push(format!("clock {}", clock::words(&status.clock)));
    }
    if let Some(admin) = &status.admin {
        let terminal = io::stdout().is_terminal();
        let page = page_with_token(admin, status.admin_token.as_deref(), terminal);
        lines.push(format!("page on {}", paint.place(&page)));
    }
    lines.extend(status.notes.iter().map(|note| format!("note: {}", paint.poor(note))));
    lines.join("\n") + "\n"
}

/// Whether the clock stands, or is ahead of the system's. The two are read one after the other.
fn is_turned(clock: &ClockState) -> bool {
    let times = (parse_iso(&clock.now), parse_iso(&clock.system));
    let (Some(now), Some(system)) = times else { return true };
    clock.frozen || now.since(system) >= Duration::from_secs(1)
}

/// Stop a server and unmount its shares
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs stop")]
pub struct StopCommand {
    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: ServerByPath,
}

impl StopCommand {
    /// Stops it, and returns when it is gone.
    pub fn run(&self) -> Result<ExitCode> {
        let mut answer = ApiClient::new(&self.server.find()?).open(&Stop {})?;
        let Stopping { stopping: pid } = answer.first()?;
        answer.wait_for_end();
        // It lets go of its data when it ends, just after its connections.
        let process = PathBuf::from(format!("/proc/{pid}/exe"));
        let end = Instant::now() + STOP_WAIT;
        while process.exists() {
            if Instant::now() >= end {
                bail!("the server (pid {pid}) is still there after {} s", STOP_WAIT.as_secs());
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.output.show(&json!({ "stopped": pid }), String::new)
    }
}
