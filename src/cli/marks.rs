//! `latchfs undelete` and `latchfs why`: a name, what stands in its way, and taking a mark away.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::EXIT_DIFFERENT;
use super::locate::{Where, ask, refused};
use super::out::Output;
use crate::control::protocol::{HandleRow, Why as Told};
use crate::control::{Answer, Request};

/// Take a delete-pending mark away
///
/// The file stays when its last open closes, and can be opened again. Exits 1 if it had no mark.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs undelete latchfs-mnt/report.txt")]
pub struct Undelete {
    /// The file, on a mount
    path: PathBuf,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Where,
}

impl Undelete {
    /// Takes it away.
    pub fn run(&self) -> Result<ExitCode> {
        let target = self.server.target(&self.path)?;
        let request = Request::Undelete { share_name: target.share_name, path: target.path };
        match ask(&target.control, &request)? {
            Answer::Undeleted { was_pending } => {
                self.output.show(&json!({ "was_pending": was_pending }), String::new)?;
                if was_pending {
                    return Ok(ExitCode::SUCCESS);
                }
                eprintln!("latchfs: {} is not marked for deletion", self.path.display());
                Ok(ExitCode::from(EXIT_DIFFERENT))
            }
            other => refused(self.path.display(), &other),
        }
    }
}

/// Say what stands in the way of a file
///
/// Who has it open and how, its locks, marks and lease, and who was refused lately. Exits 0 if
/// nothing stands in anybody's way, 1 if something does.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs why latchfs-mnt/report.txt")]
pub struct Why {
    /// The file, on a mount
    path: PathBuf,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Where,
}

impl Why {
    /// Says it.
    pub fn run(&self) -> Result<ExitCode> {
        let target = self.server.target(&self.path)?;
        let request = Request::Why { share_name: target.share_name, path: target.path };
        let told = match ask(&target.control, &request)? {
            Answer::Why(told) => told,
            other => return refused(self.path.display(), &other),
        };
        self.output.show(&told, || words(&told))?;
        Ok(if told.is_free() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIFFERENT) })
    }
}

fn words(told: &Told) -> String {
    let mut lines = Vec::new();
    let name = format!("{}:{}", told.share_name, told.path);
    if told.is_free() {
        lines.push(format!("{name}: nothing stands in the way"));
    }
    if told.delete_pending {
        lines.push(format!(
            "{name} is marked for deletion: no new open until the opens below are closed, or \
             `latchfs undelete`"
        ));
    }
    if told.leased {
        lines.push(format!("{name} is leased through REST: only the lease's holder may write it"));
    }
    if told.read_only {
        lines.push(format!("{name} is read-only"));
    }
    lines.extend(told.opens.iter().map(|open| format!("{name} is open: {}", describe(open))));
    lines.extend(told.locks.iter().map(|lock| format!("{name} is locked: {lock}")));
    if told.opens_below > 0 {
        lines.push(format!(
            "{name} has {} open below it: latchfs handles -r PATH shows them",
            told.opens_below
        ));
    }
    lines.extend(told.refusals.iter().map(|refusal| format!("refused {refusal}")));
    lines.join("\n") + "\n"
}

/// An open in a line.
fn describe(open: &HandleRow) -> String {
    let who = match (&open.program, open.pid) {
        (Some(program), 0) => program.clone(),
        (Some(program), pid) => format!("{program} (pid {pid})"),
        (None, 0) => open.client.clone(),
        (None, pid) => format!("pid {pid}"),
    };
    let HandleRow { handle, access, share, seconds, .. } = open;
    format!("{who}, access {access}, share {share}, handle {handle}, for {seconds} s")
}
