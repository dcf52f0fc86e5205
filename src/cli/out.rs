//! The output of commands: words for people, one line of JSON for programs, colour on a terminal
//! only. A closed standard output is not a failure.

use std::borrow::Cow;
use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::Args;
use owo_colors::{OwoColorize, Style};
use serde::Serialize;
use serde_json::json;

use super::table;
use crate::api::{ClientError, RefusalDetail};

/// In which form a command answers.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Output {
    /// One line of JSON
    #[arg(long, env = "LATCHFS_JSON")]
    pub json: bool,
}

impl Output {
    /// Writes the answer as JSON, or in words, and gives the exit status of a command that is done.
    pub fn show(
        self,
        answer: &impl Serialize,
        words: impl FnOnce() -> String,
    ) -> anyhow::Result<ExitCode> {
        print(&if self.json { serde_json::to_string(answer)? + "\n" } else { words() })?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes an answer that is a table, as JSON or in rows.
    pub fn show_rows<T: Serialize, const N: usize>(
        self,
        answer: &[T],
        headings: [&str; N],
        row: impl Fn(&T) -> [String; N],
    ) -> anyhow::Result<ExitCode> {
        self.show(&answer, || {
            let rows: Vec<_> = answer.iter().map(row).collect();
            table::text(headings, &rows)
        })
    }
}

/// Whether errors are written as JSON: what the command line asked for.
static JSON: OnceLock<bool> = OnceLock::new();

/// Has errors written as JSON from now on.
pub fn errors_as_json(json: bool) {
    // Once a process: it reads one command line.
    let _ = JSON.set(json);
}

/// The text of an error with its causes. A cause that the text names already is left out: errors of
/// a server name their cause themselves, as their users see no chain.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// An error of the arguments that only the command itself can see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Ends a function with a [`UsageError`], as `bail!` does with any error.
macro_rules! usage {
    ($($words:tt)*) => { return Err($crate::cli::out::UsageError(format!($($words)*)).into()) };
}
pub(crate) use usage;

/// The `kind` of an error that no rule caused: `usage` if this command or the server finds the
/// arguments wrong, else `failed`.
pub fn kind_of(error: &anyhow::Error) -> &'static str {
    let is_usage = |cause: &(dyn std::error::Error + 'static)| {
        let by_server = matches!(
            cause.downcast_ref(),
            Some(ClientError::Failed(failed)) if failed.kind == "bad_request"
        );
        by_server || cause.is::<UsageError>()
    };
    let by_context = error.downcast_ref::<UsageError>().is_some();
    if by_context || error.chain().any(is_usage) { "usage" } else { "failed" }
}

/// Writes an error to standard error: a line of words, or of JSON where the user asked for JSON.
pub fn complain(message: &str, refused: Option<&RefusalDetail>) {
    if JSON.get().is_some_and(|json| *json) {
        let kind = refused.map_or(json!("failed"), |refused| json!(refused.kind));
        let mut error = json!({ "kind": kind, "message": message });
        if let Some(holder) = refused.and_then(|refused| refused.holder.as_ref()) {
            error["holder"] = json!(holder);
        }
        eprintln!("{}", json!({ "error": error }));
        return;
    }
    let name = Paint::of(&io::stderr()).bad("latchfs:");
    eprintln!("{name} {}", printable(message));
}

/// Prints a refusal by a service, which has a code.
pub fn complain_of(message: &str, code: &str) {
    if JSON.get().is_some_and(|json| *json) {
        return eprintln!("{}", json!({ "error": { "kind": code, "message": message } }));
    }
    complain(message, None);
}

/// The text without control and format characters: names of files and programs are chosen by
/// others, and a terminal would obey them, or show their letters in another order.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| is_unsafe(letter) && letter != '\n' && letter != '\t')
}

/// As [`printable`], on one line and in one cell: line ends and tabs are escaped too.
pub fn printable_cell(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

fn escaped(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_unsafe) {
        return Cow::Borrowed(text);
    }
    let escape = |letter: char| {
        if is_unsafe(letter) { letter.escape_default().to_string() } else { letter.to_string() }
    };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Control characters, and the Unicode categories Cf (format), Zl and Zp.
fn is_unsafe(letter: char) -> bool {
    let is_format = matches!(
        letter,
        '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0001}'..='\u{e007f}'
    );
    letter.is_control() || is_format
}

/// Writes to standard output.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader has closed its end, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint(bool);

impl Paint {
    /// Plain text.
    pub const NONE: Self = Self(false);

    /// Colours if a person looks on, and wants them (<https://no-color.org>).
    pub fn of(stream: &impl IsTerminal) -> Self {
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self(stream.is_terminal() && !refused && !dumb)
    }

    /// Colours whatever the stream is.
    pub const fn always() -> Self {
        Self(true)
    }

    /// True if there are colours.
    pub const fn is_on(self) -> bool {
        self.0
    }

    /// A heading, a name.
    pub fn bold(self, text: &str) -> String {
        self.styled(text, Style::new().bold())
    }

    /// Text of less importance.
    pub fn dim(self, text: &str) -> String {
        self.styled(text, Style::new().dimmed())
    }

    /// A place to go to.
    pub fn place(self, text: &str) -> String {
        self.styled(text, Style::new().cyan())
    }

    pub fn good(self, text: &str) -> String {
        self.styled(text, Style::new().green())
    }

    /// It could be better.
    pub fn poor(self, text: &str) -> String {
        self.styled(text, Style::new().yellow())
    }

    /// It will not do.
    pub fn bad(self, text: &str) -> String {
        self.styled(text, Style::new().red().bold())
    }

    fn styled(self, text: &str, style: Style) -> String {
        if self.0 { text.style(style).to_string() } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_others_do_not_reach_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\u{9b}c\r"), "a\\u{1b}[2Jb\\u{9b}c\\r");
        assert_eq!(printable("tab\tand\nline"), "tab\tand\nline");
        assert_eq!(printable_cell("tab\tand\nline"), "tab\\tand\\nline");
    }

    #[test]
    fn format_characters_of_others_are_escaped_and_letters_are_not() {
        for (name, shown) in [
            ("invoice\u{202e}fdp.exe", "invoice\\u{202e}fdp.exe"),
            ("a\u{200b}b\u{2066}c\u{feff}\u{ad}", "a\\u{200b}b\\u{2066}c\\u{feff}\\u{ad}"),
            ("a\u{2028}b\u{e0041}", "a\\u{2028}b\\u{e0041}"),
            ("Größe\u{301} 数据 👍", "Größe\u{301} 数据 👍"),
        ] {
            assert_eq!((&*printable(name), &*printable_cell(name)), (shown, shown));
        }
    }

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow::anyhow!("the file is missing").context("reading a");
        assert_eq!(chain(&error), "reading a: the file is missing");
        let error = error.context("no start (the file is missing): create it");
        assert_eq!(chain(&error), "no start (the file is missing): create it: reading a");
    }

    #[test]
    fn colour_is_there_or_leaves_no_trace() {
        assert_eq!(Paint::NONE.bad("no"), "no");
        assert_eq!(Paint::always().bold("A"), "\x1b[1mA\x1b[0m");
    }
}
