//! `latchfs undelete` and `latchfs why`: removes a delete mark from a name, and explains why a name
//! cannot be opened. `latchfs why` of all else is in [`super::history`].

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;

use super::locate::{AccountNames, WhereAndOutput, object, refused};
use super::out::{self, printable};
use super::{EXIT_DIFFERENT, history};
use crate::api::{self, Explanation, FileExplanation, GetWhy, HandleRow, HoldRow};
use crate::journal::json::EventRow;

const OBJECT: &str = "A path on a mount, SHARE:/PATH, file:SHARE/PATH, blob:CONTAINER[/NAME], \
                      queue:NAME[/ID] or table:TABLE[/PARTITION[/ROW]]";

/// Cancel the pending deletion of a file
///
/// The file stays when its last open closes, and can be opened again. Exits 1 if it had no mark.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs undelete latchfs-mnt/report.txt")]
pub struct Undelete {
    #[arg(help = "The file: a path on a mount, or SHARE:/PATH")]
    path: PathBuf,

    #[command(flatten)]
    common: WhereAndOutput,
}

impl Undelete {
    pub fn run(&self) -> Result<ExitCode> {
        let target = self.common.server.target(&self.path)?;
        let (share, path) = (target.share_name.clone(), target.path.clone());
        let undeleted = match target.ask(&api::Undelete { share, path }) {
            Ok(undeleted) => undeleted,
            Err(error) => return refused(self.path.display(), error),
        };
        self.common.output.show(&undeleted, String::new)?;
        if undeleted.was_pending {
            return Ok(ExitCode::SUCCESS);
        }
        out::complain(&format!("{} is not marked for deletion", self.path.display()), None);
        Ok(ExitCode::from(EXIT_DIFFERENT))
    }
}

const EXAMPLE: &str = "\
Example:
  latchfs why latchfs-mnt/report.txt
  latchfs why blob:docs/a.txt
  latchfs why queue:jobs
  latchfs why table:rows/PARTITION/ROW";

/// Explain who or what refuses a file, blob, message or entity
///
/// Of a file: who has it open and how, its locks, marks and lease, and the latest refusals. Of a
/// queue: how many messages are hidden, and who got them. Of anything else: a lease, a pending
/// copy, who has a message and until when, and the last change. Exits 0 if nothing stands in the
/// way, 1 if something does.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct WhyCommand {
    #[arg(help = OBJECT)]
    path: PathBuf,

    #[command(flatten)]
    common: WhereAndOutput,
}

impl WhyCommand {
    pub fn run(&self) -> Result<ExitCode> {
        if let Some(object) = object(&self.path) {
            return history::why(&object, &self.common);
        }
        let target = self.common.server.target(&self.path)?;
        let told = match target.ask(&GetWhy { object: target.object() }) {
            Ok(Explanation::File(told)) => told,
            Ok(Explanation::Object(_)) => bail!("the server answered about another object"),
            Err(error) => return refused(self.path.display(), error),
        };
        let accounts = target.accounts()?;
        self.common.output.show(&told, || words(&told, &accounts))?;
        Ok(if told.is_free() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIFFERENT) })
    }
}

fn words(told: &FileExplanation, accounts: &AccountNames) -> String {
    let mut lines = Vec::new();
    let name = accounts.file(&told.account, &told.share_name, &told.path);
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
            "{name} has {} open below it: `latchfs handles -r {name}` shows them",
            told.opens_below
        ));
    }
    lines.extend(told.refusals.iter().map(refusal));
    let safe = lines.iter().map(|line| printable(line).into_owned());
    safe.collect::<Vec<_>>().join("\n") + "\n"
}

/// A refusal in a line.
fn refusal(event: &EventRow) -> String {
    let (operation, message) = (event.text("operation"), event.text("message"));
    format!("refused {}: {operation} by {}: {message}", event.time, super::events::who(event))
}

/// A client as commands name it: its program and process, or the name of its connection.
pub fn who(program: Option<&str>, pid: u64, client: &str) -> String {
    match (program, pid) {
        (Some(program), 0) => program.to_owned(),
        (Some(program), pid) => format!("{program} (pid {pid})"),
        (None, 0) => client.to_owned(),
        (None, pid) => format!("pid {pid}"),
    }
}

/// An open in a line.
fn describe(open: &HandleRow) -> String {
    let who = who(open.program.as_deref(), open.pid.into(), &open.client);
    let HandleRow { hold: HoldRow { handle, access, share_mode, .. }, seconds, .. } = open;
    format!("{who}, access {access}, share mode {share_mode}, handle {handle}, for {seconds} s")
}
