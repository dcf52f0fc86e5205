//! Unmodified clients against a running latchfs.
//!
//! `tests/run` installs them, pinned, into a folder of its own; without it they are skipped.

mod api;
mod gallery;
mod libraries;
mod programs;
mod races;
mod report;
mod sdks;
mod table;
#[cfg(feature = "tls")]
mod tls;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::need::python;

/// A script or folder of this one.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world/clients").join(name)
}

/// Python with the clients, which finds the harness of the SDK rounds and writes no compiled files
/// among the sources.
fn interpreter() -> Command {
    let mut python = Command::new(python());
    python.arg("-B").env("PYTHONPATH", script("harness"));
    python
}

/// Runs a client to its end: it must succeed, and the last line that it prints begin with `last`.
#[track_caller]
fn run(mut client: Command, last: &str) {
    let run = client.output().expect("the client runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let met = out.lines().last().is_some_and(|line| line.starts_with(last));
    assert!(run.status.success() && met, "{out}\n{err}");
}
