//! `latchfs snapshot`: read-only copies of a share, as REST shows them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::locate::{LocatedFile, Where, answered, refused};
use super::out::Output;
use super::progress::Moving;
use crate::api::control::{ControlAnswer, ControlRequest};

/// The form of the argument that names a share.
const SHARE: &str = "The share: NAME:/, or a path on its mount [default: that of the working \
                     directory, or the only one]";

/// Take, list or delete snapshots of a share
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs snapshot create docs:/")]
pub struct Snapshot {
    #[command(subcommand)]
    command: SnapshotSubcommand,
}

#[derive(Debug, Subcommand)]
enum SnapshotSubcommand {
    Create(CreateSnapshot),
    List(ListSnapshots),
    Delete(DeleteSnapshot),
}

/// The share, how to answer, and how to find the server.
#[derive(Debug, Args)]
struct ShareAndOutput {
    #[arg(help = SHARE)]
    path: Option<PathBuf>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Where,
}

/// Take a snapshot
///
/// Prints its timestamp, by which REST clients name it. Files share their space with the snapshot
/// where the file system can (Btrfs, XFS) and are copied where it cannot.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs snapshot create docs:/")]
struct CreateSnapshot {
    #[command(flatten)]
    common: ShareAndOutput,
}

/// List the snapshots of a share, oldest first
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs snapshot list docs:/ --json")]
struct ListSnapshots {
    #[command(flatten)]
    common: ShareAndOutput,
}

/// Delete a snapshot
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs snapshot delete 2026-11-16T10:00:00.0000000Z")]
struct DeleteSnapshot {
    /// Its timestamp, as `latchfs snapshot list` shows it
    timestamp: String,

    #[command(flatten)]
    common: ShareAndOutput,
}

impl Snapshot {
    /// Does it.
    pub fn run(&self) -> Result<ExitCode> {
        match &self.command {
            SnapshotSubcommand::Create(create) => create.run(),
            SnapshotSubcommand::List(list) => list.run(),
            SnapshotSubcommand::Delete(delete) => delete.run(),
        }
    }
}

impl ShareAndOutput {
    fn target(&self) -> Result<LocatedFile> {
        self.server.target_or_share(self.path.as_deref())
    }
}

impl CreateSnapshot {
    fn run(&self) -> Result<ExitCode> {
        let target = self.common.target()?;
        let (mut server, share_name) = (target.connect()?, target.share_name);
        let moving = Moving::new("Taking a snapshot");
        let request = ControlRequest::CreateSnapshot { share_name };
        let answer = server.ask_and_watch(&request, |files, bytes| moving.at(files, bytes))?;
        drop(moving);
        match answered(answer)? {
            ControlAnswer::Snapshots { share_name, snapshots } => {
                let stamp = snapshots.first().cloned().unwrap_or_default();
                let answer = json!({ "share": share_name, "snapshot": stamp });
                self.common.output.show(&answer, || stamp + "\n")?;
                Ok(ExitCode::SUCCESS)
            }
            other => refused("snapshot", &other),
        }
    }
}

impl ListSnapshots {
    fn run(&self) -> Result<ExitCode> {
        let target = self.common.target()?;
        let share_name = target.share_name.clone();
        match target.ask(&ControlRequest::ListSnapshots { share_name })? {
            ControlAnswer::Snapshots { snapshots, .. } => {
                self.common.output.show_rows(&snapshots, ["SNAPSHOT"], |stamp| [stamp.clone()])?;
                Ok(ExitCode::SUCCESS)
            }
            other => refused("snapshots", &other),
        }
    }
}

impl DeleteSnapshot {
    fn run(&self) -> Result<ExitCode> {
        let target = self.common.target()?;
        let share_name = target.share_name.clone();
        let request =
            ControlRequest::DeleteSnapshot { share_name, snapshot: self.timestamp.clone() };
        match target.ask(&request)? {
            ControlAnswer::Done {} => {
                self.common.output.show(&json!({ "deleted": self.timestamp }), String::new)?;
                Ok(ExitCode::SUCCESS)
            }
            other => refused(&self.timestamp, &other),
        }
    }
}
