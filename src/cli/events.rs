//! `latchfs events`: who was refused, who was closed, and with `--follow` what comes next.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::locate::{AccountNames, LocatedFile, Where, object};
use super::out::{Paint, printable_cell};
use super::time::time_of_day;
use super::{marks, table};
use crate::api::{ClientError, GetLog, WAIT_MAX};
use crate::journal::json::{EventPage, EventRow};
use crate::rules::service::ServiceKind;

const PLACE: &str = "A path on a mount, SHARE:/PATH, blob:CONTAINER/NAME, queue:NAME/ID or \
                     table:TABLE/PARTITION/ROW, with everything below it; without it, all events";

const EXAMPLE: &str = "\
Example:
  latchfs events --follow latchfs-mnt/reports
  latchfs events blob:docs/a.txt";

/// Show who was refused, and why
///
/// Of every service, oldest first: each request that was answered with an error (a status of 400 or
/// more), each refused call on a mount, each forced close and each deletion of a file; with
/// `latchfs serve --events=all` also every grant and close. A table on a terminal, otherwise a line
/// for each with tabs between: number, time, event, path, who, what. The log is bounded: what it no
/// longer holds is counted, on standard error, or as {"lost":N}.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct EventsCommand {
    #[arg(help = PLACE)]
    path: Option<PathBuf>,

    /// Keep printing new events, until Ctrl-C or the end of the server
    #[arg(short, long, env = "LATCHFS_FOLLOW")]
    follow: bool,

    /// A line of JSON for each event
    #[arg(long, env = "LATCHFS_JSON")]
    json: bool,

    #[command(flatten)]
    server: Where,
}

impl EventsCommand {
    pub fn run(&self) -> Result<ExitCode> {
        match self.show_all() {
            // The reader has closed its end.
            Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
            done => done.map(|()| ExitCode::SUCCESS),
        }
    }

    fn show_all(&self) -> Result<()> {
        let target = match &self.path {
            Some(path) => match object(path) {
                Some(object) => {
                    let path = object.to_string();
                    LocatedFile { path, share_name: None, ..self.server.everything()? }
                }
                None => self.server.target(path)?,
            },
            None => self.server.everything()?,
        };
        let (server, accounts) = (target.client(), target.accounts()?);
        let share = target.share_name;
        let path = self.path.as_ref().map(|_| target.path);
        let wait_ms = if self.follow { WAIT_MAX.as_millis() } else { 0 };
        let wait_ms = u64::try_from(wait_ms)?;
        let (mut after, mut end) = (0, None);
        loop {
            let (share, path) = (share.clone(), path.clone());
            let wait_ms = if end.is_some() { wait_ms } else { 0 };
            let page = match server.ask(&GetLog { share, path, after, wait_ms }) {
                // Followed to its end: that of the server.
                Err(ClientError::Gone | ClientError::Io(_) | ClientError::NoServer { .. })
                    if self.follow && end.is_some() =>
                {
                    return Ok(());
                }
                page => page?,
            };
            self.show(&page, &accounts, after == 0)?;
            after = page.last;
            let end = *end.get_or_insert(page.newest);
            if !self.follow && after >= end {
                return Ok(());
            }
        }
    }

    fn show(&self, page: &EventPage, accounts: &AccountNames, first: bool) -> Result<()> {
        if self.json {
            let mut text = String::new();
            if page.lost > 0 {
                text += &(json!({ "lost": page.lost }).to_string() + "\n");
            }
            for event in &page.events {
                text += &(serde_json::to_string(event)? + "\n");
            }
            return Ok(write(&text)?);
        }
        if page.lost > 0 && first {
            eprintln!("latchfs: {} older events are no longer kept", page.lost);
        } else if page.lost > 0 {
            eprintln!("latchfs: {} events were lost: they came faster than shown", page.lost);
        }
        let is_terminal = io::stdout().is_terminal();
        let row = |event| {
            let [seq, time, rest @ ..] = row(event, accounts);
            let time = if is_terminal { time_of_day(&time) } else { time };
            let [event, path, who, what] = rest;
            [seq, time, event, path, who, what]
        };
        let rows: Vec<_> = page.events.iter().map(row).collect();
        if self.follow && is_terminal {
            // The widths of what is to come are not known.
            let paint = Paint::of(&io::stdout());
            let width = table::terminal_width();
            let lines = page.events.iter().zip(&rows).map(|(event, row)| {
                let colour = paint.is_on().then(|| colour_of(&event.event)).flatten();
                line(row, colour, width)
            });
            return Ok(write(&lines.collect::<String>())?);
        }
        let headings = ["SEQ", "TIME", "EVENT", "PATH", "WHO", "WHAT"];
        if first || !rows.is_empty() {
            write(&table::text(headings, &rows))?;
        }
        Ok(())
    }
}

/// Writes and flushes at once: a script may wait for the line.
fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

fn row(event: &EventRow, accounts: &AccountNames) -> [String; 6] {
    [
        event.seq.to_string(),
        event.time.clone(),
        event.event.clone(),
        place(event, accounts),
        who(event),
        what(event),
    ]
}

/// The file, or the object of another service.
fn place(event: &EventRow, accounts: &AccountNames) -> String {
    let account = event.account.as_deref().unwrap_or_default();
    match &event.object {
        Some(object) if event.service.as_deref() != Some(ServiceKind::File.label()) => {
            object.clone()
        }
        _ => accounts.file(account, event.text("share"), event.text("path")),
    }
}

pub fn who(event: &EventRow) -> String {
    let program = Some(event.text("program")).filter(|program| !program.is_empty());
    marks::who(program, event.number("pid").unwrap_or_default(), event.text("client"))
}

fn what(event: &EventRow) -> String {
    if event.event == "refused" {
        let (operation, message) = (event.text("operation"), event.text("message"));
        let codes = [event.text("code"), event.text("errno")];
        let codes: Vec<_> = codes.into_iter().filter(|code| !code.is_empty()).collect();
        return format!("{operation}: {message} [{}]", codes.join(", "));
    }
    let mut parts = Vec::new();
    parts.extend(event.number("handle").map(|handle| format!("handle {handle}")));
    for (field, name) in [("access", "access"), ("share_mode", "share mode")] {
        let text = event.text(field);
        parts.extend((!text.is_empty()).then(|| format!("{name} {text}")));
    }
    parts.join(", ")
}

/// Red for what did not go well, yellow for what is on its way out.
fn colour_of(kind: &str) -> Option<u8> {
    match kind {
        "refused" => Some(31),
        "force-closed" | "delete-pending" => Some(33),
        _ => None,
    }
}

fn line(row: &[String; 6], colour: Option<u8>, width: Option<usize>) -> String {
    let [_, time, event, path, who, what] = row.each_ref().map(|cell| printable_cell(cell));
    let event = format!("{event:14}");
    let event = colour.map_or(event.clone(), |colour| format!("\x1b[{colour}m{event}\x1b[0m"));
    table::fitted(&[time, event.into(), path, who, what], width) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_colour_only_where_it_is_wanted() {
        let row = ["1", "now", "refused", "s:/a", "cat", "open: no"].map(str::to_owned);
        assert_eq!(line(&row, None, None), "now  refused         s:/a  cat  open: no\n");
        assert!(line(&row, Some(31), None).contains("\x1b[31mrefused       \x1b[0m"));
    }
}
