//! `latchfs play`: runs a script of opens, locks and deletes, and prints what each step answered.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Map, Value};

use super::EXIT_DIFFERENT;
use crate::play::{Answer, FreshShare, Group, Player, Step, read_script};

/// Play a script of SMB-style opens, locks and deletes
///
/// A script has one JSON object a line: a scenario (id, title, steps) or a step, as below. Each
/// scenario starts on an empty share of its own. Each step's answer is printed as a line of JSON,
/// in order: "status" is the NTSTATUS name, "out" what the step gave back, "why" who stood in
/// the way.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Play {
    /// The script; `-` reads standard input
    file: PathBuf,

    /// Compare each status with the one in the script; exit 1 at the first difference
    #[arg(long)]
    check: bool,

    /// With --check, compare what each step gave back as well
    #[arg(long, requires = "check")]
    check_out: bool,
}

const EXAMPLES: &str = "\
Example: one program holds a file with share none, another wants to read it.
  {\"op\":\"mkfile\",\"name\":\"f\",\"data\":\"hello\"}
  {\"op\":\"open\",\"conn\":\"A\",\"h\":\"a\",\"name\":\"f\",\"access\":\"RW\",\"share\":\"\"}
  {\"op\":\"open\",\"conn\":\"B\",\"h\":\"b\",\"name\":\"f\",\"access\":\"R\",\"share\":\"RWD\"}
All operations are described in docs/play.md.";

/// Where a step stands in the script, and what differs.
struct Difference {
    number: usize,
    what: String,
}

impl Play {
    /// Plays the script.
    pub fn run(&self) -> Result<ExitCode> {
        let text = self.read().with_context(|| format!("reading {}", self.file.display()))?;
        let groups = read_script(&text).with_context(|| self.file.display().to_string())?;
        let fresh = FreshShare::new()?;
        let mut out = BufWriter::new(io::stdout().lock());
        for group in &groups {
            let difference = match self.play(&fresh, group, &mut out) {
                // Whoever reads has seen enough, as `head` has.
                Err(error) if is_broken_pipe(&error) => return Ok(ExitCode::SUCCESS),
                played => played?,
            };
            if let Some(Difference { number, what }) = difference {
                out.flush()?;
                let id =
                    if group.id.is_empty() { String::new() } else { format!("{}, ", group.id) };
                eprintln!("latchfs: {id}step {number}: {what}");
                return Ok(ExitCode::from(EXIT_DIFFERENT));
            }
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }

    fn read(&self) -> io::Result<String> {
        if self.file.as_os_str() == "-" {
            return io::read_to_string(io::stdin().lock());
        }
        std::fs::read_to_string(&self.file)
    }

    fn play(
        &self,
        fresh: &FreshShare,
        group: &Group,
        out: &mut impl Write,
    ) -> Result<Option<Difference>> {
        let mut player = Player::new(fresh.share());
        player.start(group)?;
        for (number, step) in (1..).zip(&group.steps) {
            let answer = player.step(&step.op);
            serde_json::to_writer(&mut *out, &line(group, &answer))?;
            writeln!(out)?;
            if let Some(what) = self.difference(step, &answer) {
                return Ok(Some(Difference { number, what }));
            }
        }
        player.finish()?;
        fresh.clear()?;
        Ok(None)
    }

    fn difference(&self, step: &Step, answer: &Answer) -> Option<String> {
        if !self.check {
            return None;
        }
        if let Some(expected) = &step.status
            && expected != answer.status
        {
            let why = answer.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            return Some(format!("expected {expected}, got {}{why}", answer.status));
        }
        if self.check_out && step.out.is_some() && step.out != answer.out {
            let shown =
                |out: &Option<Value>| out.as_ref().map_or("nothing".into(), Value::to_string);
            let (expected, got) = (shown(&step.out), shown(&answer.out));
            return Some(format!("expected the output {expected}, got {got}"));
        }
        None
    }
}

fn line(group: &Group, answer: &Answer) -> Value {
    let mut line = Map::new();
    if !group.id.is_empty() {
        line.insert("id".into(), group.id.clone().into());
    }
    line.insert("status".into(), answer.status.into());
    if let Some(out) = &answer.out {
        line.insert("out".into(), out.clone());
    }
    if let Some(why) = &answer.why {
        line.insert("why".into(), why.clone().into());
    }
    line.into()
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let json = error.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    io.or(json) == Some(ErrorKind::BrokenPipe)
}
