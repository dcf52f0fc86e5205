//! `latchfs lease`: who has leased a file or a share, and ending that.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::EXIT_DIFFERENT;
use super::locate::{Target, Where, ask, refused};
use super::out::Output;
use crate::control::protocol::Lease as Told;
use crate::control::{Answer, Request};

/// Show or break the lease of a file or a share
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs lease show latchfs-mnt/report.txt")]
pub struct Lease {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Show(Show),
    Break(Break),
}

/// Show a lease
///
/// Its state, and the ID of a file's: whoever has that may write. The root of a mount, or no PATH,
/// means the share's own lease.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs lease show latchfs-mnt/report.txt --json")]
struct Show {
    /// The file, on a mount
    path: Option<PathBuf>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Where,
}

/// Break a lease, without its ID
///
/// A file's ends at once, a share's within --period. Exits 1 if there was none.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs lease break latchfs-mnt/report.txt")]
struct Break {
    /// The file, on a mount; its root, or none, means the share's own lease
    path: Option<PathBuf>,

    /// Seconds until a share's lease ends, 0 to 60 [default: when its time is over]
    #[arg(long, value_name = "SECONDS", env = "LATCHFS_PERIOD")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=60))]
    period: Option<u32>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Where,
}

impl Lease {
    /// Does it.
    pub fn run(&self) -> Result<ExitCode> {
        match &self.command {
            Command::Show(show) => show.run(),
            Command::Break(end) => end.run(),
        }
    }
}

impl Show {
    fn run(&self) -> Result<ExitCode> {
        let path = self.path.as_deref();
        let Target { control, share_name, path: within } = self.server.target_or_share(path)?;
        match ask(&control, &Request::Lease { share_name, path: within })? {
            Answer::Lease(told) => {
                self.output.show(&told, || words(&told))?;
                Ok(ExitCode::SUCCESS)
            }
            other => refused(name(path), &other),
        }
    }
}

impl Break {
    fn run(&self) -> Result<ExitCode> {
        let path = self.path.as_deref();
        let Target { control, share_name, path: within } = self.server.target_or_share(path)?;
        let request = Request::BreakLease { share_name, path: within, period: self.period };
        match ask(&control, &request)? {
            Answer::LeaseBroken { was_leased, seconds } => {
                let answer = json!({ "was_leased": was_leased, "seconds": seconds });
                self.output.show(&answer, || match seconds {
                    0 => String::new(),
                    seconds => format!("the lease ends in {seconds} s\n"),
                })?;
                if was_leased {
                    return Ok(ExitCode::SUCCESS);
                }
                eprintln!("latchfs: {} is not leased", name(path));
                Ok(ExitCode::from(EXIT_DIFFERENT))
            }
            other => refused(name(path), &other),
        }
    }
}

fn words(told: &Told) -> String {
    let Told { share_name, path, state, duration, id, .. } = told;
    let mut text = format!("{share_name}:{path}: {state}");
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
