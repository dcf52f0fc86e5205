//! `--daemon`: the command starts itself again in the background and returns when that one has
//! its mounts, with its exit status where it has not.
//!
//! The two are joined by a pipe, the background one's standard output: a line `ready` and the
//! summary, or its end. Errors of the start go to the user's standard error; afterwards it has a
//! log file.

use std::env;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::cli::EXIT_FAILED;
use crate::cli::out::{self, Paint};

/// Tells the one in the background what it is.
const MARK: &str = "LATCHFS_DAEMON_CHILD";

const READY: &str = "ready";

/// The value of the mark if the command runs on a terminal that takes colours.
const PAINTED: &str = "painted";

/// True in the background.
pub fn is_child() -> bool {
    env::var_os(MARK).is_some()
}

/// In the background: the colours of the terminal that the start screen ends up on.
pub fn paint() -> Paint {
    if env::var_os(MARK).is_some_and(|mark| mark == PAINTED) {
        return Paint::always();
    }
    Paint::NONE
}

/// Starts this command again, in the background, and waits until its mounts are usable.
pub fn launch() -> Result<ExitCode> {
    let program = env::current_exe().context("finding this program")?;
    let mut child = Command::new(program)
        // The name that this program was called by may stand for options.
        .arg0(env::args_os().next().unwrap_or_default())
        .args(env::args_os().skip(1))
        .env(MARK, if Paint::of(&std::io::stdout()).is_on() { PAINTED } else { "1" })
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting the server")?;
    let mut pipe = BufReader::new(child.stdout.take().context("the server has no output")?);
    let mut first = String::new();
    pipe.read_line(&mut first).context("waiting for the server")?;
    if first.trim_end() == READY {
        let mut summary = String::new();
        pipe.read_to_string(&mut summary).context("waiting for the server")?;
        out::print(&summary).context("showing the start")?;
        return Ok(ExitCode::SUCCESS);
    }
    let status = child.wait().context("waiting for the server")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
    Ok(ExitCode::from(code.unwrap_or(EXIT_FAILED)))
}

/// In the background: no terminal's signals any more.
pub fn leave_terminal() {
    // Refused to the leader of a process group, which we are if we were started so: as good.
    let _ = rustix::process::setsid();
}

/// In the background: the mounts are usable.
pub fn ready(summary: &str, log: &Path) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{READY}\n{summary}").as_bytes()).context("telling the command")?;
    out.flush().context("telling the command")?;
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(log)
        .with_context(|| log.display().to_string())?;
    // Closes the pipe and the user's terminal, so that processes which wait for them continue.
    rustix::stdio::dup2_stdout(&log)?;
    rustix::stdio::dup2_stderr(&log)?;
    Ok(())
}
