//! `latchfs shares`: lists, creates and deletes the shares of a server.

use std::process::ExitCode;

use anyhow::Result;
use clap::builder::BoolishValueParser;
use clap::{Args, Subcommand};

use super::locate::{AccountOf, answered};
use super::out::Output;
use crate::api::{self, ClientError, GetShares, ShareEntry, ShareList};
use crate::file::service::ShareDenial;

/// List, make or delete shares
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs shares create docs --quota 10\n  latchfs shares list")]
pub struct Shares {
    #[command(subcommand)]
    command: SharesSubcommand,
}

#[derive(Debug, Subcommand)]
enum SharesSubcommand {
    List(ListShares),
    Create(CreateShare),
    Delete(DeleteShare),
}

/// List the shares
///
/// A table on a terminal, otherwise a line for each with tabs between: name, quota in GiB, how
/// many snapshots, state of its lease, where it is mounted; with --deleted also the version of a
/// deleted one.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs shares list --deleted --json")]
struct ListShares {
    /// And those that were deleted and can be restored
    #[arg(long, env = "LATCHFS_DELETED", value_parser = BoolishValueParser::new())]
    deleted: bool,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: AccountOf,
}

/// Make a share
///
/// It is served through REST at once; mounts are made when a server starts.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs shares create docs --quota 10")]
struct CreateShare {
    /// Share name: 3 to 63 lower-case letters, digits and single hyphens
    name: String,

    /// Its quota in GiB; shown, not enforced
    #[arg(long, value_name = "GIB", env = "LATCHFS_QUOTA")]
    quota: Option<u32>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: AccountOf,
}

/// Delete a share
///
/// Open handles in the share are closed by force, and its mount answers with errors. The share can
/// be restored through REST for seven days.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs shares delete docs --snapshots")]
struct DeleteShare {
    /// Share name
    name: String,

    /// Also delete its snapshots, even leased ones; otherwise a share with snapshots is refused
    #[arg(long)]
    snapshots: bool,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: AccountOf,
}

impl Shares {
    pub fn run(&self) -> Result<ExitCode> {
        match &self.command {
            SharesSubcommand::List(list) => list.run(),
            SharesSubcommand::Create(create) => {
                let (name, quota_gib) = (create.name.clone(), create.quota);
                let made = create.server.ask(&api::CreateShare { name, quota_gib });
                let name = format!("share {}", create.name);
                answered(made, name, create.output, |_| String::new())
            }
            SharesSubcommand::Delete(delete) => {
                let (name, snapshots) = (delete.name.clone(), delete.snapshots);
                let wanted = api::DeleteShare { name, snapshots };
                let deleted = delete.server.for_deletion().ask(&wanted).map_err(with_hint);
                let name = format!("share {}", delete.name);
                answered(deleted, name, delete.output, |_| String::new())
            }
        }
    }
}

impl ListShares {
    fn run(&self) -> Result<ExitCode> {
        let ShareList { shares } = self.server.ask(&GetShares { deleted: self.deleted })?;
        let headings = ["SHARE", "QUOTA GIB", "SNAPSHOTS", "LEASE", "MOUNTED ON"];
        if self.deleted {
            let [name, quota, snapshots, lease, mounts] = headings;
            let headings = [name, quota, snapshots, lease, mounts, "DELETED"];
            self.output.show_rows(&shares, headings, row_with_version)?;
        } else {
            self.output.show_rows(&shares, headings, row)?;
        }
        Ok(ExitCode::SUCCESS)
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
