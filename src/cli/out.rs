//! What commands write: words for people, one line of JSON for programs, colour on a terminal
//! only. Nobody reading any more is no failure.

use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};

use clap::Args;
use clap::builder::BoolishValueParser;
use owo_colors::{OwoColorize, Style};
use serde::Serialize;

use super::table;

/// In which form a command answers.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Output {
    /// One line of JSON
    #[arg(long, env = "LATCHFS_JSON", value_parser = BoolishValueParser::new())]
    pub json: bool,
}

impl Output {
    /// Writes the answer as JSON, or in words.
    pub fn show(self, answer: &impl Serialize, words: impl FnOnce() -> String) -> io::Result<()> {
        if self.json {
            return print(&(serde_json::to_string(answer)? + "\n"));
        }
        print(&words())
    }

    /// The same for an answer that is a table.
    pub fn show_rows<T: Serialize, const N: usize>(
        self,
        answer: &[T],
        headings: [&str; N],
        row: impl Fn(&T) -> [String; N],
    ) -> io::Result<()> {
        self.show(&answer, || {
            let rows: Vec<_> = answer.iter().map(row).collect();
            table::text(headings, &rows)
        })
    }
}

/// Writes to standard output.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever read has seen enough, as `head` has.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Colours, or none.
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

    /// What stands beside the matter.
    pub fn dim(self, text: &str) -> String {
        self.styled(text, Style::new().dimmed())
    }

    /// A place to go to.
    pub fn place(self, text: &str) -> String {
        self.styled(text, Style::new().cyan())
    }

    /// All is well.
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
    fn colour_is_there_or_leaves_no_trace() {
        assert_eq!(Paint::NONE.bad("no"), "no");
        assert_eq!(Paint::always().bold("A"), "\x1b[1mA\x1b[0m");
    }
}
