//! `latchfs lease`: shows and breaks leases of files, shares, blobs and containers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use super::EXIT_DIFFERENT;
use super::locate::{Where, WhereAndOutput, answered, object, refused};
use super::out;
use crate::api::{BreakLease, Call, GetLease, LeaseBroken, LeaseFields, LeaseShown};

/// Show or break the lease of a file, a share, a blob or a container
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  latchfs lease show latchfs-mnt/report.txt")]
pub enum LeaseCommand {
    /// Show a lease
    ///
    /// Its state, and the ID of the lease of a file, a blob or a container, which writing needs.
    /// The root of a mount, or no PATH, means the lease of the share.
    #[command(after_help = "Example:\n  latchfs lease show latchfs-mnt/report.txt --json")]
    Show {
        #[arg(help = "A path on a mount, SHARE:/PATH, file:SHARE/PATH, or blob:CONTAINER[/NAME]")]
        path: Option<PathBuf>,

        #[command(flatten)]
        common: WhereAndOutput,
    },
    /// Break a lease, without its ID
    ///
    /// A file lease ends at once, any other within --period. The root of a mount, or no PATH, means
    /// the lease of the share. Exits 1 if there is no lease.
    #[command(after_help = "Example:\n  latchfs lease break latchfs-mnt/report.txt")]
    Break {
        #[arg(help = "A path on a mount, SHARE:/PATH, file:SHARE/PATH, or blob:CONTAINER[/NAME]")]
        path: Option<PathBuf>,

        /// Seconds until the lease ends, 0 to 60 [default: when its time is over]
        #[arg(long, value_name = "SECONDS", env = "LATCHFS_PERIOD")]
        #[arg(value_parser = clap::value_parser!(u32).range(0..=60))]
        period: Option<u32>,

        #[command(flatten)]
        common: WhereAndOutput,
    },
}

impl LeaseCommand {
    pub fn run(&self) -> Result<ExitCode> {
        match self {
            LeaseCommand::Show { path, common } => {
                let path = path.as_deref();
                let shown = asked(path, &common.server, |object| GetLease { object })?;
                answered(shown, name(path), common.output, |shown| match shown {
                    LeaseShown::File(told) => {
                        words(&format!("{}:{}", told.share_name, told.path), &told.lease)
                    }
                    LeaseShown::Object(told) => words(&told.object, &told.lease),
                })
            }
            LeaseCommand::Break { path, period, common } => end(path.as_deref(), *period, common),
        }
    }
}

fn end(path: Option<&Path>, period: Option<u32>, common: &WhereAndOutput) -> Result<ExitCode> {
    let broken = asked(path, &common.server, |object| BreakLease { object, period })?;
    let broken @ LeaseBroken { was_leased, seconds } = match broken {
        Ok(broken) => broken,
        Err(error) => return refused(name(path), error),
    };
    common.output.show(&broken, || match seconds {
        0 => String::new(),
        seconds => format!("the lease ends in {seconds} s\n"),
    })?;
    if was_leased {
        return Ok(ExitCode::SUCCESS);
    }
    out::complain(&format!("{} is not leased", name(path)), None);
    Ok(ExitCode::from(EXIT_DIFFERENT))
}

/// The answer to a call about an object, or about the share that a path means.
fn asked<C: Call>(
    path: Option<&Path>,
    server: &Where,
    call: impl FnOnce(String) -> C,
) -> Result<Result<C::Answer>> {
    if let Some(object) = path.and_then(object) {
        return Ok(server.of.ask(&call(object.to_string())));
    }
    let target = server.target_or_share(path)?;
    Ok(target.ask(&call(target.object())))
}

fn words(name: &str, LeaseFields { state, duration, id, .. }: &LeaseFields) -> String {
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
