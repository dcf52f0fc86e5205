//! `latchfs handles` and `latchfs close-handle`: lists open handles, and closes them by force.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::locate::{AccountNames, LocatedFile, WhereAndOutput, refused};
use super::out::{self, usage};
use super::{EXIT_DIFFERENT, time};
use crate::api::{CloseHandles, Closed, GetHandles, HandleList, HandleRow};

/// Show who has what open
///
/// A table on a terminal, otherwise a line for each open with tabs between: handle, path, access,
/// share mode, program, process id, for how long.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs handles latchfs-mnt -r")]
pub struct Handles {
    #[arg(help = "A file or directory: a path on a mount, or SHARE:/PATH; without it, all open \
                  files")]
    path: Option<PathBuf>,

    /// Include everything below PATH
    #[arg(short, long, requires = "path", env = "LATCHFS_RECURSIVE")]
    recursive: bool,

    #[command(flatten)]
    common: WhereAndOutput,
}

impl Handles {
    pub fn run(&self) -> Result<ExitCode> {
        let target = match &self.path {
            Some(path) => self.common.server.target(path)?,
            None => self.common.server.everything()?,
        };
        let path = self.path.as_ref().map(|_| target.path.clone());
        let share = target.share_name.clone();
        let wanted = GetHandles { share, path, recursive: self.recursive };
        let HandleList { handles, left_out } = match target.ask(&wanted) {
            Ok(found) => found,
            Err(error) => {
                return refused(self.path.as_deref().unwrap_or(Path::new(".")).display(), error);
            }
        };
        let headings = ["HANDLE", "PATH", "ACCESS", "SHARE", "PROGRAM", "PID", "SINCE"];
        let accounts = target.accounts()?;
        self.common.output.show_rows(&handles, headings, |handle| row(handle, &accounts))?;
        if handles.is_empty() && self.path.is_none() && !self.common.output.json {
            let hint = accounts.hint(target.account.as_deref());
            if let Some(hint) = hint {
                eprintln!("latchfs: {hint}");
            }
        }
        if handles.is_empty() && !self.recursive {
            self.hint(&target)?;
        }
        if left_out > 0 {
            eprintln!("latchfs: {left_out} more are not shown: name a path");
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Handles {
    /// Tells of handles below a directory: of a directory itself nobody has a handle, as a rule.
    fn hint(&self, target: &LocatedFile) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let (share, within) = (target.share_name.clone(), Some(target.path.clone()));
        let wanted = GetHandles { share, path: within, recursive: true };
        let HandleList { handles, left_out } = target.ask(&wanted)?;
        if !handles.is_empty() {
            let count = handles.len() as u64 + left_out as u64;
            let path = path.display();
            eprintln!("latchfs: {path} itself is not open; --recursive shows {count} below it");
        }
        Ok(())
    }
}

fn row(handle: &HandleRow, accounts: &AccountNames) -> [String; 7] {
    let hold = &handle.hold;
    let mut path = accounts.file(&hold.account, &hold.share_name, &hold.path);
    if handle.delete_pending {
        path.push_str(" (delete pending)");
    }
    [
        hold.handle.to_string(),
        path,
        hold.access.clone(),
        hold.share_mode.clone(),
        handle.program.clone().unwrap_or_else(|| handle.client.clone()),
        handle.pid.to_string(),
        time::short(handle.seconds),
    ]
}

/// Force-close a handle
///
/// The handle's share mode and locks end with it. Exits 1 if there was nothing to close.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs close-handle 1099511627777")]
pub struct CloseHandle {
    /// The handle's number, as `latchfs handles` shows it
    #[arg(conflicts_with = "all", value_parser = number)]
    handle: Option<u64>,

    /// Every handle of the account, or of the share of --share-name
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    common: WhereAndOutput,
}

impl CloseHandle {
    pub fn run(&self) -> Result<ExitCode> {
        if self.handle.is_none() && !self.all {
            usage!("name a handle, or --all");
        }
        let share = self.common.server.share_name.clone();
        let target = self.common.server.everything()?;
        let Closed { closed } = target.ask(&CloseHandles { share, handle: self.handle })?;
        let words = || if closed == 0 { String::new() } else { format!("closed {closed}\n") };
        self.common.output.show(&json!({ "closed": closed }), words)?;
        if closed == 0 {
            let hint = target.accounts()?.hint(target.account.as_deref());
            let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            let message = "no such handle is open: `latchfs handles` lists them";
            out::complain(&format!("{message}{hint}"), None);
            return Ok(ExitCode::from(EXIT_DIFFERENT));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "expected the number of a handle, as `latchfs handles` shows it".into())
}
