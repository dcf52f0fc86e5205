//! The command `latchfs play` as its users meet it: the built program, its output and exit status,
//! and the page that describes it.
//!
//! - [`command`]: what is printed, what is checked, how it fails;
//! - [`pages`]: `docs/play.md` lists all there is, and its examples work.
mod command;
mod pages;
use crate::common::pages as texts;

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

/// The root of the repository.
const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// What a run of the program left.
#[derive(Debug)]
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }

    /// The statuses printed, in order.
    fn statuses(&self) -> Vec<String> {
        self.answers().iter().map(|answer| answer["status"].as_str().unwrap().to_owned()).collect()
    }

    /// The answers printed: each line is an object.
    fn answers(&self) -> Vec<serde_json::Map<String, serde_json::Value>> {
        self.lines().iter().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

/// The program, with a folder of its own for temporary files.
fn program(temporary: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_latchfs"));
    command.env("TMPDIR", temporary).env_remove("RUST_LOG").current_dir(REPOSITORY);
    command
}

/// Runs `latchfs play` to its end, with `script` as its standard input. However it ends, it leaves
/// no temporary file.
fn play(args: &[&str], script: &str) -> Run {
    let temporary = TempDir::new().unwrap();
    let output = Command::from_std(program(temporary.path()))
        .arg("play")
        .args(args)
        .write_stdin(script)
        .output()
        .unwrap();
    assert_left_empty(temporary.path());
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn assert_left_empty(folder: &Path) {
    let left: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}
