//! `latchfs snapshot`: read-only copies of a share, as REST shows them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Deserialize;

use super::locate::{LocatedFile, Where, answered, refused};
use super::out::Output;
use super::progress::Moving;
use crate::api::{self, ClientError, GetSnapshots, SnapshotProgress, SnapshotTaken};

/// The form of the argument that names a share.
const SHARE: &str = "The share: NAME:/, or a path on its mount [default: that of the working \
                     directory, or the only one]";

/// Take, list or delete snapshots of a share
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  latchfs snapshot create docs:/")]
pub enum Snapshot {
    /// Take a snapshot
    ///
    /// Prints its timestamp, by which REST clients name it. Files share their space with the
    /// snapshot where the file system can (Btrfs, XFS) and are copied where it cannot.
    #[command(after_help = "Example:\n  latchfs snapshot create docs:/")]
    Create(ShareAndOutput),
    /// List the snapshots of a share, oldest first
    #[command(after_help = "Example:\n  latchfs snapshot list docs:/ --json")]
    List(ShareAndOutput),
    /// Delete a snapshot
    #[command(after_help = "Example:\n  latchfs snapshot delete 2026-11-16T10:00:00.0000000Z")]
    Delete {
        /// Its timestamp, as `latchfs snapshot list` shows it
        timestamp: String,

        #[command(flatten)]
        common: ShareAndOutput,
    },
}

/// The share, how to answer, and how to find the server.
#[derive(Debug, Args)]
pub struct ShareAndOutput {
    #[arg(help = SHARE)]
    path: Option<PathBuf>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Where,
}

impl Snapshot {
    pub fn run(&self) -> Result<ExitCode> {
        let (Snapshot::Create(common) | Snapshot::List(common) | Snapshot::Delete { common, .. }) =
            self;
        let target = common.server.target_or_share(common.path.as_deref())?;
        let share = target.share_name.clone();
        match self {
            Snapshot::Create(_) => {
                let moving = Moving::new("Taking a snapshot");
                let taken = take(&target, &moving);
                drop(moving);
                let words = |taken: &SnapshotTaken| format!("{}\n", taken.snapshot);
                answered(taken.map_err(Into::into), "snapshot", common.output, words)
            }
            Snapshot::List(_) => {
                let listed = match target.ask(&GetSnapshots { share }) {
                    Ok(listed) => listed.snapshots,
                    Err(error) => return refused("snapshots", error),
                };
                common.output.show_rows(&listed, ["SNAPSHOT"], |stamp| [stamp.clone()])
            }
            Snapshot::Delete { timestamp, .. } => {
                let snapshot = timestamp.clone();
                let deleted = target.ask(&api::DeleteSnapshot { snapshot, share });
                answered(deleted, timestamp, common.output, |_| String::new())
            }
        }
    }
}

/// A line of the answer.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Progress(SnapshotProgress),
    Taken(SnapshotTaken),
}

fn take(target: &LocatedFile, moving: &Moving) -> Result<SnapshotTaken, ClientError> {
    let share = target.share_name.clone();
    let mut lines = target.client().open(&api::CreateSnapshot { share })?;
    loop {
        match lines.first()? {
            Line::Progress(SnapshotProgress { files, bytes }) => moving.at(files, bytes),
            Line::Taken(taken) => return Ok(taken),
        }
    }
}
