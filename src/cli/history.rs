//! `latchfs history`, and `latchfs why` of blobs, queues, messages and entities: who changed an
//! object, and why requests on it are refused. The engine keeps the changes.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::Value;

use super::EXIT_DIFFERENT;
use super::locate::{AccountAndOutput, WhereAndOutput, refused};
use super::out::printable;
use super::time::time_of_day;
use crate::api::{self, ChangeRow, Explanation, GetHistory, GetWhy, ObjectAddress, ObjectState};

const EXAMPLE: &str = "\
Example:
  latchfs history blob:docs/a.txt
  latchfs history table:rows --last 5";

/// Show who changed blobs, messages and entities
///
/// The latest changes, oldest first. A table on a terminal, shortened; otherwise a line for each
/// with tabs between: time, object, operation, client, client request ID, user agent, address,
/// ETag. The last writer of an object is always known; older changes are forgotten at a restart,
/// and the oldest when the server has 32,768 later changes and refusals. Files have `latchfs
/// events` instead.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct History {
    /// blob:CONTAINER/NAME, queue:NAME/ID, table:TABLE/PARTITION/ROW, or the beginning of one, with
    /// everything below it; without it, all changes
    object: Option<String>,

    /// Show only the latest N changes
    #[arg(long, value_name = "N", default_value_t = 50, env = "LATCHFS_LAST")]
    last: usize,

    #[command(flatten)]
    common: AccountAndOutput,
}

impl History {
    pub fn run(&self) -> Result<ExitCode> {
        let api::History { changes } =
            self.common.server.ask(&GetHistory { object: self.object.clone() })?;
        let latest = &changes[changes.len().saturating_sub(self.last)..];
        let headings = [
            "TIME",
            "OBJECT",
            "OPERATION",
            "CLIENT",
            "CLIENT REQUEST",
            "USER AGENT",
            "ADDRESS",
            "ETAG",
        ];
        let cells = if io::stdout().is_terminal() { short_row } else { row };
        self.common.output.show_rows(latest, headings, cells)
    }
}

/// A change as it fits on a terminal: the time of day, the beginning of the request's ID, and what
/// the client calls itself first.
fn short_row(change: &ChangeRow) -> [String; 8] {
    const ID_LETTERS: usize = 8;
    let [time, object, operation, client, id, agent, address, etag] = row(change);
    let id = id.chars().take(ID_LETTERS).collect();
    let agent = agent.split(' ').next().unwrap_or_default().to_owned();
    [time_of_day(&time), object, operation, client, id, agent, address, etag]
}

fn row(change: &ChangeRow) -> [String; 8] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        change.time.clone(),
        change.object.clone(),
        change.operation.clone(),
        text(&change.client),
        text(&change.client_request),
        text(&change.user_agent),
        text(&change.address),
        text(&change.etag),
    ]
}

/// Says what stands in the way of an object, and who changed it.
pub fn why(object: &ObjectAddress, common: &WhereAndOutput) -> Result<ExitCode> {
    let told = match common.server.of.ask(&GetWhy { object: object.to_string() }) {
        Ok(Explanation::Object(told)) => told,
        Ok(Explanation::File(_)) => bail!("the server answered about a file"),
        Err(error) => return refused(object, error),
    };
    common.output.show(&told, || words(&told))?;
    Ok(if told.in_the_way.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIFFERENT) })
}

fn words(told: &ObjectState) -> String {
    let name = &told.object;
    let mut lines = Vec::new();
    if told.in_the_way.is_empty() {
        lines.push(format!("{name}: nothing stands in the way"));
    }
    lines.extend(told.in_the_way.iter().map(|one| format!("{name}: {}", one.message)));
    let fact = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{} {value}", name.replace('_', " "))
    };
    if !told.facts.is_empty() {
        lines.push(format!("  {}", told.facts.iter().map(fact).collect::<Vec<_>>().join(", ")));
    }
    lines.extend(told.changes.iter().map(|change| {
        let is_below = change.object.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        let prefix = if is_below { format!("{}: ", change.object) } else { String::new() };
        format!("  {prefix}{}", change.words())
    }));
    let safe = lines.iter().map(|line| printable(line).into_owned());
    safe.collect::<Vec<_>>().join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shortened_for_a_terminal() {
        let text = |text: &str| Some(text.to_owned());
        let change = ChangeRow {
            account: "a".into(),
            time: "2026-01-02T03:04:05.1234567Z".into(),
            object: "blob:docs/a".into(),
            operation: "Put Blob".into(),
            client: text("A"),
            client_request: text("5f0c1a22-0000-4000-8000-000000000000"),
            user_agent: text("azsdk-python-storage-blob/12.28.0 Python/3.11 (Linux)"),
            address: text("127.0.0.1:4000"),
            etag: text("\"0x8DF\""),
        };
        let shown = short_row(&change).join(" ");
        let agent = "azsdk-python-storage-blob/12.28.0";
        let rest = format!("Put Blob A 5f0c1a22 {agent} 127.0.0.1:4000 \"0x8DF\"");
        assert_eq!(shown, format!("03:04:05.123 blob:docs/a {rest}"));
    }
}
