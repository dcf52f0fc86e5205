//! Which server a command means, and which file of which share.
//!
//! In order: `--control`; the mount that the path lies on; the mount that the working directory
//! lies on; `./latchfs-data`; what is mounted on `./latchfs-mnt`. A path on a mount is one of its
//! share; with `--share-name` a path is one from the root of that share.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;

use super::serve::{DATA_DIR, MOUNT_DIR, control_of};
use super::{EXIT_BUSY, EXIT_FAILED};
use crate::control::{Answer, Client, Request};
use crate::fuse::mounts;

/// How to find the server.
#[derive(Debug, Clone, Default, Args)]
pub struct Socket {
    /// The server's control socket [default: that of the mount, or of ./latchfs-data]
    #[arg(long, value_name = "SOCKET", env = "LATCHFS_CONTROL")]
    pub control: Option<PathBuf>,
}

/// How to find a share of a server.
#[derive(Debug, Clone, Default, Args)]
pub struct Where {
    #[command(flatten)]
    pub server: Socket,

    /// The share; paths are then paths within it
    #[arg(long, value_name = "NAME", env = "LATCHFS_SHARE_NAME")]
    pub share_name: Option<String>,
}

/// A file of a share, and the server that has it.
#[derive(Debug)]
pub struct Target {
    /// The server's socket.
    pub control: PathBuf,
    /// The share.
    pub share_name: Option<String>,
    /// The path within it.
    pub path: String,
}

impl Where {
    /// What `path` means.
    pub fn target(&self, path: &Path) -> Result<Target> {
        let text = |path: &Path| {
            let text = path.to_str().map(str::to_owned);
            text.ok_or_else(|| anyhow!("{}: names on a share are UTF-8", path.display()))
        };
        if self.share_name.is_some() {
            let share_name = self.share_name.clone();
            return Ok(Target { control: self.socket()?, share_name, path: text(path)? });
        }
        let real = real_path(path)?;
        let found = mounts::of_path(&real).and_then(|mount| Some((mount.origin()?, mount.path)));
        let Some((origin, root)) = found else {
            bail!(
                "{} is not on a latchfs mount: name a path on one, or give --share-name",
                path.display()
            );
        };
        let control = match self.server.control.clone().or(origin.control) {
            Some(control) => control,
            None => self.socket()?,
        };
        let inside = real.strip_prefix(&root).unwrap_or(&real);
        Ok(Target { control, share_name: Some(origin.share), path: text(inside)? })
    }

    /// What `path` means; a share as a whole where there is none: the one that was named, that of
    /// the working directory, or the only one.
    pub fn target_or_share(&self, path: Option<&Path>) -> Result<Target> {
        if let Some(path) = path {
            return self.target(path);
        }
        let control = self.socket()?;
        let here = env::current_dir().context("the working directory")?;
        let origin = mounts::of_path(&here).and_then(|mount| mount.origin());
        let here = origin.filter(|origin| origin.control.as_ref() == Some(&control));
        let share_name = self.share_name.clone().or(here.map(|origin| origin.share));
        Ok(Target { control, share_name, path: String::new() })
    }

    /// The server that is meant where no path says so.
    pub fn socket(&self) -> Result<PathBuf> {
        self.server.find()
    }
}

impl Socket {
    /// The server that is meant where no path says so.
    pub fn find(&self) -> Result<PathBuf> {
        if let Some(control) = &self.control {
            return Ok(control.clone());
        }
        let here = env::current_dir().context("the working directory")?;
        let on_mount = mounts::of_path(&here).and_then(|mount| mount.origin()?.control);
        let control = on_mount.unwrap_or_else(|| control_of(&here.join(DATA_DIR)));
        if control.exists() {
            return Ok(control);
        }
        let below = here.join(MOUNT_DIR);
        let mut near = mounts::all().into_iter().filter(|mount| mount.path.starts_with(&below));
        near.find_map(|mount| mount.origin()?.control).with_context(|| {
            format!(
                "no server found: neither the working directory nor {} leads to one. Name a path \
                 on a mount, or give --control SOCKET",
                control.display()
            )
        })
    }
}

/// The path without links on the way; the last name is taken as it is, since it may not exist, or
/// be a link of the share.
pub fn real_path(path: &Path) -> Result<PathBuf> {
    let absolute = env::current_dir().context("the working directory")?.join(path);
    let last = absolute.components().next_back().map(|part| part.as_os_str().to_owned());
    let plain = last.filter(|name| *name != OsStr::new("..") && *name != OsStr::new("/"));
    let Some(name) = plain else { return canonical(&absolute) };
    // A mount point as such: its parent's real path and its name are its real path.
    let parent = absolute.parent().unwrap_or(Path::new("/"));
    Ok(canonical(parent)?.join(name))
}

fn canonical(path: &Path) -> Result<PathBuf> {
    path.canonicalize().with_context(|| path.display().to_string())
}

/// Asks a server once. A failure is an error; a refusal is an answer.
pub fn ask(control: &Path, request: &Request) -> Result<Answer> {
    answered(Client::connect(control)?.ask(request)?)
}

/// Turns a failure into an error.
pub fn answered(answer: Answer) -> Result<Answer> {
    match answer {
        Answer::Failed { message } => bail!(message),
        answer => Ok(answer),
    }
}

/// What is left of an answer that was not expected.
pub fn unexpected(answer: &Answer) -> anyhow::Error {
    match answer {
        Answer::Refused(refused) => anyhow!("{}", refused.message),
        other => anyhow!("the server answered something else: {other:?}"),
    }
}

/// The end of a command that got no: why, about `what`, and the exit status that goes with it.
pub fn refused(what: impl fmt::Display, answer: &Answer) -> Result<ExitCode> {
    let Answer::Refused(refused) = answer else { return Err(unexpected(answer)) };
    eprintln!("latchfs: {what}: {}", refused.message);
    Ok(ExitCode::from(if refused.kind.is_busy() { EXIT_BUSY } else { EXIT_FAILED }))
}
