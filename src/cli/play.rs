//! `latchfs play`: runs a script of opens, locks and deletes, and prints what each step answered.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use clap::builder::BoolishValueParser;
use serde::Serialize;
use serde_json::Value;

use super::EXIT_DIFFERENT;
use super::locate::{LocatedFile, Where, answered, unexpected};
use crate::api::control::protocol::StepAnswer;
use crate::api::control::{self, ControlClient, ControlRequest};
use crate::play::{FreshShare, Group, Op, Player, Step, read_script};

/// Play a script of SMB-style opens, locks and deletes
///
/// A script has one JSON object a line: a scenario (id, title, steps) or a step, as below. Each
/// scenario starts on an empty share of its own. Each step's answer is printed as a line of JSON,
/// in order: "status" is the NTSTATUS name, "out" what the step gave back, "why" who stood in
/// the way. With --server the steps are carried out on a running server's share, as it is; its
/// handles are closed after each scenario.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Play {
    /// The script; `-` reads standard input
    file: PathBuf,

    /// Compare each status with the one in the script; exit 1 at the first difference
    #[arg(long, env = "LATCHFS_CHECK", value_parser = BoolishValueParser::new())]
    check: bool,

    /// With --check, compare what each step gave back as well
    #[arg(long, requires = "check", env = "LATCHFS_CHECK_OUT")]
    #[arg(value_parser = BoolishValueParser::new())]
    check_out: bool,

    /// Play against a running server
    #[arg(long, env = "LATCHFS_SERVER", value_parser = BoolishValueParser::new())]
    server: bool,

    #[command(flatten)]
    place: Where,
}

const EXAMPLES: &str = "\
Example: one program holds a file with share none, another wants to read it.
  {\"op\":\"mkfile\",\"name\":\"f\",\"data\":\"hello\"}
  {\"op\":\"open\",\"conn\":\"A\",\"h\":\"a\",\"name\":\"f\",\"access\":\"RW\",\"share\":\"\"}
  {\"op\":\"open\",\"conn\":\"B\",\"h\":\"b\",\"name\":\"f\",\"access\":\"R\",\"share\":\"RWD\"}
All operations are described in docs/play.md.

Exit status: 0 played, 1 --check found a difference, 2 the script could not be read or played.";

/// Where scenarios play.
enum Stage {
    Fresh(Box<FreshShare>),
    Server(LocatedFile),
}

impl Play {
    /// Plays the script.
    pub fn run(&self) -> Result<ExitCode> {
        let name = self.name();
        let text = self.read().with_context(|| format!("reading {name}"))?;
        let groups = read_script(&text).with_context(|| name.clone())?;
        let says_what = |step: &Step| step.status.is_some() || step.out.is_some();
        ensure!(
            !self.check || groups.iter().flat_map(|group| &group.steps).any(says_what),
            "{name}: no step says what it expects, so there is nothing to check"
        );
        let stage = self.stage()?;
        let mut printer = Printer::new(io::stdout().lock());
        for group in &groups {
            let difference = self.play(&stage, group, &mut printer)?;
            if let Some(difference) = difference {
                printer.flush()?;
                eprintln!("latchfs: {name}: {difference}");
                return Ok(ExitCode::from(EXIT_DIFFERENT));
            }
            if printer.closed && !self.check {
                break;
            }
        }
        printer.flush()?;
        Ok(ExitCode::SUCCESS)
    }

    fn reads_stdin(&self) -> bool {
        self.file.as_os_str() == "-"
    }

    /// The name of the script in messages.
    fn name(&self) -> String {
        if self.reads_stdin() {
            return "standard input".into();
        }
        self.file.display().to_string()
    }

    fn read(&self) -> io::Result<String> {
        if self.reads_stdin() {
            return io::read_to_string(io::stdin().lock());
        }
        std::fs::read_to_string(&self.file)
    }

    fn stage(&self) -> Result<Stage> {
        if self.server {
            return Ok(Stage::Server(self.place.everything()?));
        }
        Ok(Stage::Fresh(Box::new(FreshShare::new()?)))
    }

    /// Plays a group to its end, or to the first difference, which it says in words.
    fn play(
        &self,
        stage: &Stage,
        group: &Group,
        printer: &mut Printer<impl Write>,
    ) -> Result<Option<String>> {
        match stage {
            Stage::Fresh(fresh) => {
                let mut player = Player::new(fresh.share());
                player.start(group)?;
                let difference = self.play_steps(group, printer, |op| {
                    let answer = player.step(op);
                    let status = answer.status.to_owned();
                    Ok(StepAnswer { status, out: answer.out, why: answer.why })
                })?;
                player.finish()?;
                fresh.clear()?;
                Ok(difference)
            }
            Stage::Server(target) => {
                let mut server = target.connect()?;
                let share_name = target.share_name.clone();
                let start = ControlRequest::Play { share_name, trace: group.trace };
                answered(server.ask(&start)?)?;
                self.play_steps(group, printer, |op| ask_step(&mut server, op))
            }
        }
    }

    fn play_steps(
        &self,
        group: &Group,
        printer: &mut Printer<impl Write>,
        mut carry_out: impl FnMut(&Op) -> Result<StepAnswer>,
    ) -> Result<Option<String>> {
        for (number, step) in (1..).zip(&group.steps) {
            let answer = carry_out(&step.op)?;
            printer.print(&Line::new(group, &answer))?;
            if let Some(what) = self.difference(step, &answer) {
                let place = place(group, number);
                return Ok(Some(format!("line {}: {place}: {what}", step.line)));
            }
        }
        Ok(None)
    }

    fn difference(&self, step: &Step, answer: &StepAnswer) -> Option<String> {
        if !self.check {
            return None;
        }
        if let Some(expected) = &step.status
            && *expected != answer.status
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

fn ask_step(server: &mut ControlClient, op: &Op) -> Result<StepAnswer> {
    let Value::Object(step) = serde_json::to_value(op)? else {
        unreachable!("an operation is written as an object")
    };
    match answered(server.ask(&ControlRequest::Step { step })?)? {
        control::ControlAnswer::Step(answer) => Ok(answer),
        other => Err(unexpected(&other)),
    }
}

/// An answer as it is printed.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    out: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn new(group: &'a Group, answer: &'a StepAnswer) -> Self {
        let StepAnswer { status, out, why } = answer;
        Self { id: &group.id, status, out: out.as_ref(), why: why.as_deref() }
    }
}

/// Prints answers until the reader closes its end.
struct Printer<W: Write> {
    out: BufWriter<W>,
    /// The reader has closed its end, as `head` does. That is not a failure, but a check continues.
    closed: bool,
}

impl<W: Write> Printer<W> {
    fn new(out: W) -> Self {
        Self { out: BufWriter::new(out), closed: false }
    }

    fn print(&mut self, line: &Line<'_>) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let printed = serde_json::to_writer(&mut self.out, line).map_err(io::Error::from);
        let ended = printed.and_then(|()| writeln!(self.out));
        self.unless_closed(ended)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let flushed = self.out.flush();
        self.unless_closed(flushed)
    }

    fn unless_closed(&mut self, done: io::Result<()>) -> io::Result<()> {
        match done {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            done => done,
        }
    }
}

/// Where a step stands, as a person would look for it.
fn place(group: &Group, number: usize) -> String {
    match (group.trace, group.id.as_str()) {
        (true, seq) => format!("seq {seq}, step {number}"),
        (false, "") => format!("step {number}"),
        (false, id) => format!("{id}, step {number}"),
    }
}
