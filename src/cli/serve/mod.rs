//! `latchfs serve`: shares, their mounts and the control socket, until somebody says stop.
//!
//! ```text
//!   host     what is served, and how it starts and ends
//!   listen   the REST listener; tls: its certificate
//!   daemon   returning to the shell when the mounts are usable
//!   notify   telling systemd
//! ```

mod daemon;
mod host;
mod listen;
mod notify;
mod tls;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::{Context, Result};
use clap::builder::BoolishValueParser;
use clap::{Args, Parser, ValueEnum};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::control::{SOCKET_NAME, Server};
use crate::core::ShareMode;
use crate::fuse::{MountOptions, ShareRule, UnlinkMode};
use crate::store::root::HIDDEN;
use host::Host;
use listen::Listening;

/// Where data is kept unless the user says.
pub const DATA_DIR: &str = "latchfs-data";

/// Where shares are mounted unless the user says.
const MOUNT_DIR: &str = "latchfs-mnt";

/// The control socket of a data directory.
pub fn control_of(data: &Path) -> PathBuf {
    data.join(HIDDEN).join(SOCKET_NAME)
}

/// Serve shares and mount them
///
/// Runs in the foreground until Ctrl-C, `latchfs stop`, or the end of its last mount; then
/// everything is unmounted. Shares are sub-directories of the data directory, made if missing.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs serve --share docs --mount docs=/mnt/docs --daemon")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Serve {
    /// Where the shares are kept
    #[arg(long, value_name = "DIR", default_value = DATA_DIR, env = "LATCHFS_DATA")]
    pub data: PathBuf,

    /// A share to serve [default: those there are, or 'share']
    #[arg(long = "share", value_name = "NAME", env = "LATCHFS_SHARES", value_delimiter = ',')]
    pub shares: Vec<String>,

    /// Mount a share on a directory [default: ./latchfs-mnt, or a directory in it for each share]
    #[arg(long = "mount", value_name = "NAME=DIR", env = "LATCHFS_MOUNTS", value_delimiter = ',')]
    #[arg(value_parser = mount_pair)]
    pub mounts: Vec<(String, PathBuf)>,

    /// Mount nothing
    #[arg(long, conflicts_with = "mounts", env = "LATCHFS_NO_MOUNT")]
    #[arg(value_parser = BoolishValueParser::new())]
    pub no_mount: bool,

    /// What opens tolerate that nothing else speaks for: letters r, w, d, or none
    #[arg(long, value_name = "MODE", default_value = "rwd", env = "LATCHFS_DEFAULT_SHARE")]
    #[arg(value_parser = share_mode)]
    pub default_share: ShareMode,

    /// What opens of matching files tolerate, such as '*.xlsx=r'; the first match counts
    #[arg(long = "share-rule", value_name = "GLOB=MODE", env = "LATCHFS_SHARE_RULES")]
    #[arg(value_delimiter = ',', value_parser = share_rule)]
    pub rules: Vec<ShareRule>,

    /// Byte-range locks stop reads and writes, not only other locks
    #[arg(long, env = "LATCHFS_MANDATORY_LOCKS", value_parser = BoolishValueParser::new())]
    pub mandatory_locks: bool,

    /// flock counts as a share mode: exclusive as none, shared as all
    #[arg(long, env = "LATCHFS_FLOCK_AS_SHARE_MODE", value_parser = BoolishValueParser::new())]
    pub flock_as_share_mode: bool,

    /// What becomes of an open file that is unlinked
    #[arg(long, value_enum, default_value_t = Unlink::Nt, env = "LATCHFS_UNLINK")]
    pub unlink: Unlink,

    /// Names that differ by case alone are different names
    #[arg(long, env = "LATCHFS_CASE_SENSITIVE", value_parser = BoolishValueParser::new())]
    pub case_sensitive: bool,

    /// Other users may enter the mounts
    #[arg(long, env = "LATCHFS_ALLOW_OTHER", value_parser = BoolishValueParser::new())]
    pub allow_other: bool,

    /// Show every file as this user's
    #[arg(long, value_name = "N", env = "LATCHFS_UID")]
    pub uid: Option<u32>,

    /// Show every file as this group's
    #[arg(long, value_name = "N", env = "LATCHFS_GID")]
    pub gid: Option<u32>,

    /// Permission bits to show no file with, in octal
    #[arg(long, value_name = "OCT", value_parser = umask, env = "LATCHFS_UMASK")]
    pub umask: Option<u32>,

    /// Nothing can be changed through the mounts
    #[arg(long, env = "LATCHFS_READ_ONLY", value_parser = BoolishValueParser::new())]
    pub read_only: bool,

    /// Return when the mounts are usable, and serve in the background
    #[arg(long, env = "LATCHFS_DAEMON", value_parser = BoolishValueParser::new())]
    pub daemon: bool,

    /// Write this file when the mounts are usable: JSON with pid, control socket and mounts
    #[arg(long, value_name = "FILE", env = "LATCHFS_READY_FILE")]
    pub ready_file: Option<PathBuf>,

    /// Threads that serve each mount
    #[arg(long, value_name = "N", default_value_t = 2, env = "LATCHFS_WORKERS")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    pub workers: u16,

    #[command(flatten)]
    pub listen: listen::Listen,
}

/// What becomes of an open file that is unlinked.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Unlink {
    /// It is delete pending and keeps its name until its last open closes
    Nt,
    /// Its name is free at once
    Posix,
}

#[derive(Debug, Parser)]
struct Alone {
    #[command(flatten)]
    serve: Serve,
}

impl Serve {
    /// As `latchfs` without arguments has it: the variables count, nothing else does.
    pub fn by_default() -> Self {
        Alone::parse_from(["latchfs"]).serve
    }

    /// Serves until somebody says stop.
    pub fn run(&self) -> Result<ExitCode> {
        if self.daemon && !daemon::is_child() {
            return daemon::launch();
        }
        if daemon::is_child() {
            daemon::leave_terminal();
        }
        let (stop, stopped) = channel();
        stop_on_signals(stop.clone())?;
        let host = Host::start(self, stop)?;
        let listening = self.listen.start(host.engine(), &host.state())?;
        let control = Server::start(&host.control(), host.serving())?;
        self.announce(&host, &control, listening.as_ref())?;
        let served = wait(&stopped);
        notify::tell("STOPPING=1");
        if let Some(file) = &self.ready_file {
            drop(fs::remove_file(file));
        }
        // The mounts first: whoever asked for the stop is told by the end of its connection.
        drop(listening);
        host.unmount_all();
        drop(control);
        served
    }

    /// Tells everyone who waits that the mounts are usable.
    fn announce(&self, host: &Host, control: &Server, listening: Option<&Listening>) -> Result<()> {
        if let Some(file) = &self.ready_file {
            let mounts = host
                .mounted()
                .into_iter()
                .map(|(share, path)| json!({ "share": share, "path": path.to_string_lossy() }));
            let mut text = json!({
                "pid": std::process::id(),
                "control": control.path().to_string_lossy(),
                "mounts": mounts.collect::<Vec<_>>(),
            });
            if let Some(listening) = listening {
                text["endpoint"] = listening.endpoint.clone().into();
                text["account"] = listening.account.name().into();
                text["key"] = listening.account.key().text().into();
                text["connection_string"] = listening.connection_string.clone().into();
                if let Some(file) = &listening.ca_file {
                    text["ca_file"] = file.to_string_lossy().into();
                }
            }
            write_whole(file, &format!("{text}\n"), 0o644)
                .with_context(|| format!("writing {}", file.display()))?;
        }
        notify::tell("READY=1");
        let rest = listening.map(Listening::summary).unwrap_or_default();
        let text = rest + &host.summary();
        if daemon::is_child() {
            return daemon::ready(&text, &host.log_file());
        }
        let text = text + "Ctrl-C unmounts and stops.\n";
        // Nobody may be reading: that is no reason to stop.
        let mut out = std::io::stdout().lock();
        drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
        Ok(())
    }

    fn mount_options(&self, control: PathBuf) -> MountOptions {
        MountOptions {
            default_share: self.default_share,
            rules: self.rules.clone(),
            mandatory_locks: self.mandatory_locks,
            flock_as_share_mode: self.flock_as_share_mode,
            allow_other: self.allow_other,
            read_only: self.read_only,
            workers: self.workers.into(),
            unlink: match self.unlink {
                Unlink::Nt => UnlinkMode::Nt,
                Unlink::Posix => UnlinkMode::Posix,
            },
            uid: self.uid,
            gid: self.gid,
            umask: self.umask,
            control: Some(control),
            ..MountOptions::default()
        }
    }
}

/// What ends a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// A signal, or a request.
    Asked,
    /// The last mount is gone.
    Unmounted,
}

fn wait(stopped: &Receiver<Stop>) -> Result<ExitCode> {
    let stop = stopped.recv().context("nobody is left who could say stop")?;
    if stop == Stop::Unmounted {
        log::info!("the last mount is gone");
    }
    Ok(ExitCode::SUCCESS)
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

/// Writes a file so that it is seen whole or not at all.
fn write_whole(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    file.persist(path)?;
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

fn share_mode(text: &str) -> Result<ShareMode, String> {
    ShareMode::parse(text).ok_or_else(|| "letters r, w, d, or none".into())
}

fn share_rule(text: &str) -> Result<ShareRule, String> {
    ShareRule::parse(text).ok_or_else(|| "a pattern and a share mode, as in *.xlsx=r".into())
}

fn umask(text: &str) -> Result<u32, String> {
    let bits = u32::from_str_radix(text, 8).ok().filter(|bits| *bits <= 0o777);
    bits.ok_or_else(|| "octal permission bits, as in 022".into())
}
