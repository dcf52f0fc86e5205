//! `latchfs report`: what went wrong between clients, or was never tried.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::builder::PossibleValuesParser;
use clap::{Args, builder::TypedValueParser as _};

use super::EXIT_DIFFERENT;
use super::locate::{ServerAndOutput, ask};
use super::out::{Paint, printable};
use super::time::time_of_day;
use crate::api::{GetJunit, GetReport, Junit};
use crate::bench::report::{Evidence, Finding, Level, Report};

const EXAMPLE: &str = "\
Example:
  latchfs report --fail-on error      # after a test run
  latchfs report --since test_orders --junit report.xml";

/// Say what went wrong between clients, or was never tried
///
/// Looks at the requests of all clients since the start of the server: who overwrote what he had
/// not read, who created what was there, who wrote under a lease that had ended, who sent a request
/// twice; and which refusals never happened. An error was seen and lost or doubled data; a warning
/// was seen; a hint is the pattern without the overlap, or by clients that are not surely told
/// apart. `latchfs client add` gives clients names.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct ReportCommand {
    /// What was found since this mark alone: the name of a test
    #[arg(long, value_name = "MARK", env = "LATCHFS_SINCE")]
    since: Option<String>,

    /// Exit with status 1 if there is a finding of this level or above, or may be one, because the
    /// report is incomplete
    #[arg(long, value_name = "LEVEL", env = "LATCHFS_FAIL_ON", value_parser = levels())]
    fail_on: Option<Level>,

    /// Write the findings to this file too, as `JUnit` does; `--fail-on` says which of them fail
    /// [default of that: error]
    #[arg(long, value_name = "FILE", env = "LATCHFS_JUNIT")]
    junit: Option<PathBuf>,

    #[command(flatten)]
    common: ServerAndOutput,
}

/// The levels that a command can fail on.
fn levels() -> impl clap::builder::TypedValueParser<Value = Level> {
    PossibleValuesParser::new(["error", "warn", "hint"])
        .map(|name| Level::read(&name).unwrap_or(Level::Error))
}

impl ReportCommand {
    pub fn run(&self) -> Result<ExitCode> {
        let call = GetReport { since: self.since.clone(), level: None };
        let server = self.common.server.find()?;
        let report = ask(&server, &call)?;
        if let Some(file) = &self.junit {
            let since = self.since.clone();
            let fail_on = self.fail_on.map(|level| level.name().to_owned());
            let Junit { junit } = ask(&server, &GetJunit { since, fail_on })?;
            fs::write(file, junit).with_context(|| format!("writing {}", file.display()))?;
        }
        let paint = Paint::of(&io::stdout());
        let wide = io::stdout().is_terminal();
        self.common.output.show(&report, || words(&report, paint, wide))?;
        let fails = self.fail_on.is_some_and(|level| report.fails(level));
        Ok(if fails { ExitCode::from(EXIT_DIFFERENT) } else { ExitCode::SUCCESS })
    }
}

/// The report for people: a paragraph for each finding, and a list of what was never tested.
fn words(report: &Report, paint: Paint, wide: bool) -> String {
    let (never, found): (Vec<_>, Vec<_>) =
        report.findings.iter().partition(|finding| finding.level == Level::Info);
    let mut text = String::new();
    for finding in &found {
        text += &paragraph(finding, paint, wide);
        text.push('\n');
    }
    if !never.is_empty() {
        let _ = writeln!(text, "{}", paint.bold("never tested"));
        for finding in &never {
            let _ = writeln!(text, "  {}: {}", printable(&finding.object), finding.message);
        }
        text.push('\n');
    }
    text + &last_line(report) + "\n"
}

/// How many findings there are, and what else must be known of the report.
fn last_line(report: &Report) -> String {
    let count = |level| report.findings.iter().filter(|one| one.level == level).count();
    let counted = [
        (Level::Error, "error", "errors"),
        (Level::Warn, "warning", "warnings"),
        (Level::Hint, "hint", "hints"),
        (Level::Info, "never tested", "never tested"),
    ];
    let counted = counted.map(|(level, one, many)| match count(level) {
        1 => format!("1 {one}"),
        other => format!("{other} {many}"),
    });
    let mut line = format!("{} in {} requests", counted.join(", "), report.requests);
    if report.ignored > 0 {
        let _ = write!(line, "; {} ignored by rules", report.ignored);
    }
    if report.incomplete {
        line += "; incomplete: not everything fitted in memory, so that there may be more: a mark \
                 or a reset between tests makes room";
    }
    line
}

fn paragraph(finding: &Finding, paint: Paint, wide: bool) -> String {
    let level = finding.level.name();
    let level = match finding.level {
        Level::Error => paint.bad(level),
        Level::Warn => paint.poor(level),
        Level::Hint | Level::Info => paint.bold(level),
    };
    let times =
        if finding.count == 1 { String::new() } else { format!(", {} times", finding.count) };
    let mark = finding.mark.as_ref().map(|mark| format!(", in {mark}")).unwrap_or_default();
    let object = paint.place(&printable(&finding.object));
    let mark = printable(&mark);
    let mut text = format!("{level}: {} of {object}{times}{mark}\n", finding.rule.name());
    let _ = writeln!(text, "  {}.", printable(&finding.message));
    let width = |of: fn(&Evidence) -> &str| {
        finding.evidence.iter().map(|row| of(row).chars().count()).max().unwrap_or_default()
    };
    let (client, operation) = (width(|row| &row.client), width(|row| &row.operation));
    for row in &finding.evidence {
        let etag = row.etag.as_deref().unwrap_or("-");
        let status = row.status.map_or("no answer".to_owned(), |status| status.to_string());
        let time = if wide { time_of_day(&row.time) } else { row.time.clone() };
        let _ = writeln!(
            text,
            "  {:>8}  {time}  {:client$}  {:operation$}  {}  {etag}  {status}",
            row.seq,
            printable(&row.client),
            row.operation,
            printable(&row.object)
        );
    }
    let _ = writeln!(text, "  {}", finding.advice);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::ReportRule;

    fn report() -> Report {
        let row = |seq, client: &str, operation: &str, etag: &str| Evidence {
            seq,
            time: "2026-01-02T03:04:05.1234567Z".into(),
            client: client.into(),
            operation: operation.into(),
            object: "blob:c/<a>".into(),
            etag: Some(etag.into()),
            status: Some(200),
        };
        let finding = |level, rule: ReportRule| Finding {
            rule,
            level,
            object: "blob:c/<a>".into(),
            count: 2,
            clients: vec!["A".into(), "B".into()],
            operations: vec!["Get Blob".into(), "Put Blob".into()],
            message: "A read it, B changed it, and A overwrote the change".into(),
            advice: "Send If-Match.".into(),
            mark: Some("test_a".into()),
            evidence: vec![row(2, "A", "Get Blob", "\"1\""), row(13, "B", "Put Blob", "\"2\"")],
        };
        Report {
            since: None,
            requests: 7,
            incomplete: true,
            ignored: 1,
            findings: vec![
                finding(Level::Error, ReportRule::LostUpdate),
                finding(Level::Warn, ReportRule::BlindRetry),
                Finding {
                    message: "Put Blob could be refused once (exists), and never was".into(),
                    ..finding(Level::Info, ReportRule::NeverTested)
                },
            ],
        }
    }

    #[test]
    fn a_finding_is_a_paragraph_with_its_evidence_in_order() {
        let mut one = report();
        one.findings.remove(1);
        assert_eq!(
            words(&one, Paint::NONE, true),
            "error: lost-update of blob:c/<a>, 2 times, in test_a\n\
             \u{20} A read it, B changed it, and A overwrote the change.\n\
             \u{20}        2  03:04:05.123  A  Get Blob  blob:c/<a>  \"1\"  200\n\
             \u{20}       13  03:04:05.123  B  Put Blob  blob:c/<a>  \"2\"  200\n\
             \u{20} Send If-Match.\n\
             \n\
             never tested\n\
             \u{20} blob:c/<a>: Put Blob could be refused once (exists), and never was\n\
             \n\
             1 error, 0 warnings, 0 hints, 1 never tested in 7 requests; 1 ignored by rules; \
             incomplete: not everything fitted in memory, so that there may be more: a mark or a \
             reset between tests makes room\n"
        );
    }
}
