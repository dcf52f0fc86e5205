//! `latchfs shares`: lists, creates and deletes the shares of a server.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use super::locate::{AccountAndOutput, answered};
use crate::api::{self, ClientError, GetShares, ShareEntry, ShareList};
use crate::file::service::ShareDenial;

/// List, make or delete shares
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  latchfs shares create docs --quota 10\n  latchfs shares list")]
pub enum Shares {
    /// List the shares
    ///
    /// A table on a terminal, otherwise a line for each with tabs between: name, quota in GiB, how
    /// many snapshots, state of its lease, where it is mounted; with --deleted also the version of
    /// a deleted one.
    #[command(after_help = "Example:\n  latchfs shares list --deleted --json")]
    List {
        /// And those that were deleted and can be restored
        #[arg(long, env = "LATCHFS_DELETED")]
        deleted: bool,

        #[command(flatten)]
        common: AccountAndOutput,
    },
    /// Make a share
    ///
    /// It is served through REST at once; mounts are made when a server starts.
    #[command(after_help = "Example:\n  latchfs shares create docs --quota 10")]
    Create {
        /// Share name: 3 to 63 lower-case letters, digits and single hyphens
        name: String,

        /// Its quota in GiB; shown, not enforced
        #[arg(long, value_name = "GIB", env = "LATCHFS_QUOTA")]
        quota: Option<u32>,

        #[command(flatten)]
        common: AccountAndOutput,
    },
    /// Delete a share
    ///
    /// Open handles in the share are closed by force, and its mount answers with errors. The share
    /// can be restored through REST for seven days.
    #[command(after_help = "Example:\n  latchfs shares delete docs --snapshots")]
    Delete {
        /// Share name
        name: String,

        /// Also delete its snapshots, even leased ones; otherwise a share with snapshots is refused
        #[arg(long)]
        snapshots: bool,

        #[command(flatten)]
        common: AccountAndOutput,
    },
}

impl Shares {
    pub fn run(&self) -> Result<ExitCode> {
        match self {
            Shares::List { deleted, common } => list(*deleted, common),
            Shares::Create { name, quota, common } => {
                let wanted = api::CreateShare { name: name.clone(), quota_gib: *quota };
                let made = common.server.ask(&wanted);
                answered(made, format!("share {name}"), common.output, |_| String::new())
            }
            Shares::Delete { name, snapshots, common } => {
                let wanted = api::DeleteShare { name: name.clone(), snapshots: *snapshots };
                let deleted = common.server.for_deletion().ask(&wanted).map_err(with_hint);
                answered(deleted, format!("share {name}"), common.output, |_| String::new())
            }
        }
    }
}

fn list(deleted: bool, common: &AccountAndOutput) -> Result<ExitCode> {
    let ShareList { shares } = common.server.ask(&GetShares { deleted })?;
    let headings = ["SHARE", "QUOTA GIB", "SNAPSHOTS", "LEASE", "MOUNTED ON"];
    if deleted {
        let [name, quota, snapshots, lease, mounts] = headings;
        let headings = [name, quota, snapshots, lease, mounts, "DELETED"];
        common.output.show_rows(&shares, headings, row_with_version)
    } else {
        common.output.show_rows(&shares, headings, row)
    }
}

fn row(share: &ShareEntry) -> [String; 5] {
    let mounts: Vec<_> =
        share.mounts.iter().map(|mount| mount.path.display().to_string()).collect();
    [
        share.name.clone(),
        share.quota_gib.to_string(),
        share.snapshots.to_string(),
        share.lease.clone(),
        mounts.join(" "),
    ]
}

/// The row, with the version of a share that was deleted, which restoring it needs.
fn row_with_version(share: &ShareEntry) -> [String; 6] {
    let [name, quota, snapshots, lease, mounts] = row(share);
    [name, quota, snapshots, lease, mounts, share.deleted.clone().unwrap_or_default()]
}

/// The error, with the option that removes what is in the way.
fn with_hint(mut error: anyhow::Error) -> anyhow::Error {
    if let Some(ClientError::Refused(refused)) = error.downcast_mut()
        && refused.message == ShareDenial::ShareHasSnapshots.to_string()
    {
        refused.message.push_str(" --snapshots deletes them too.");
    }
    error
}
