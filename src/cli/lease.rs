//! `latchfs lease`: shows and breaks leases of files, shares, blobs and containers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::EXIT_DIFFERENT;
use super::locate::{Where, object, refused};
use super::out::{self, Output};
use crate::api::control::address::ObjectAddress;
use crate::api::control::{ControlAnswer, ControlRequest};

/// Show or break the lease of a file, a share, a blob or a container
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs lease show latchfs-mnt/report.txt")]
pub struct LeaseCommand {
    #[command(subcommand)]
    command: LeaseSubcommand,
}

#[derive(Debug, Subcommand)]
enum LeaseSubcommand {
    Show(ShowLease),
    Break(Break),
}

/// Show a lease
///
/// Its state, and the ID of the lease of a file, a blob or a container, which writing needs. The
/// root of a mount, or no PATH, means the lease of the share.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs lease show latchfs-mnt/report.txt --json")]
struct ShowLease {
    #[arg(help = "A path on a mount, SHARE:/PATH, file:SHARE/PATH, or blob:CONTAINER[/NAME]")]
    path: Option<PathBuf>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Where,
}

/// Break a lease, without its ID
///
/// A file lease ends at once, any other within --period. The root of a mount, or no PATH, means the
/// lease of the share. Exits 1 if there is no lease.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs lease break latchfs-mnt/report.txt")]
struct Break {
    #[arg(help = "A path on a mount, SHARE:/PATH, file:SHARE/PATH, or blob:CONTAINER[/NAME]")]
    path: Option<PathBuf>,

    /// Seconds until the lease ends, 0 to 60 [default: when its time is over]
    #[arg(long, value_name = "SECONDS", env = "LATCHFS_PERIOD")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=60))]
    period: Option<u32>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Where,
}

impl LeaseCommand {
    /// Does it.
    pub fn run(&self) -> Result<ExitCode> {
        match &self.command {
            LeaseSubcommand::Show(show) => show.run(),
            LeaseSubcommand::Break(end) => end.run(),
        }
    }
}

impl ShowLease {
    fn run(&self) -> Result<ExitCode> {
        let path = self.path.as_deref();
        if let Some(object) = path.and_then(object) {
            return self.of_object(&object);
        }
        let target = self.server.target_or_share(path)?;
        let (share_name, within) = (target.share_name.clone(), target.path.clone());
        match target.ask(&ControlRequest::Lease { share_name, path: within })? {
            ControlAnswer::Lease(told) => {
                let name = format!("{}:{}", told.share_name, told.path);
                let words = || words(&name, &told.state, told.duration.as_ref(), told.id.as_ref());
                self.output.show(&told, words)?;
                Ok(ExitCode::SUCCESS)
            }
            other => refused(name(path), &other),
        }
    }

    fn of_object(&self, object: &ObjectAddress) -> Result<ExitCode> {
        match self.server.of.ask(&ControlRequest::ObjectLease { object: object.to_string() })? {
            ControlAnswer::ObjectLease(told) => {
                let name = &told.object;
                let words = || words(name, &told.state, told.duration.as_ref(), told.id.as_ref());
                self.output.show(&told, words)?;
                Ok(ExitCode::SUCCESS)
            }
            other => refused(object, &other),
        }
    }
}

impl Break {
    fn run(&self) -> Result<ExitCode> {
        let path = self.path.as_deref();
        let period = self.period;
        let answer = if let Some(object) = path.and_then(object) {
            let object = object.to_string();
            self.server.of.ask(&ControlRequest::BreakObjectLease { object, period })?
        } else {
            let target = self.server.target_or_share(path)?;
            let (share_name, within) = (target.share_name.clone(), target.path.clone());
            target.ask(&ControlRequest::BreakLease { share_name, path: within, period })?
        };
        match answer {
            ControlAnswer::LeaseBroken { was_leased, seconds } => {
                let answer = json!({ "was_leased": was_leased, "seconds": seconds });
                self.output.show(&answer, || match seconds {
                    0 => String::new(),
                    seconds => format!("the lease ends in {seconds} s\n"),
                })?;
                if was_leased {
                    return Ok(ExitCode::SUCCESS);
                }
                out::complain(&format!("{} is not leased", name(path)), None);
                Ok(ExitCode::from(EXIT_DIFFERENT))
            }
            other => refused(name(path), &other),
        }
    }
}

fn words(name: &str, state: &str, duration: Option<&String>, id: Option<&String>) -> String {
    let mut text = format!("{name}: {state}");
    if let Some(duration) = duration {
        text = format!("{text}, {duration}");
    }
    match id {
        Some(id) => format!("{text}, ID {id}\n"),
        None => text + "\n",
    }
}

fn name(path: Option<&Path>) -> String {
    path.map_or("the share".to_owned(), |path| path.display().to_string())
}
