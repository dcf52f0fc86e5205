//! The races of docs/reproduce.md, by the Python SDKs and the HTTP API of the test bench.

use std::path::Path;
use std::process::Command;

use crate::common::need::{self, python};
use crate::common::served::Served;

/// The races, each with its cure.
const RACES: usize = 12;

#[test]
fn every_race_and_its_cure_happens_every_time() {
    if !need::installed(&[&python()]) {
        return;
    }
    let rounds = if std::env::var_os("LATCHFS_FULL").is_some() { "1000" } else { "20" };
    let server = Served::start(&["--no-mount", "--share", "docs"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world/clients/races/races.py");
    let run = Command::new(python())
        // No compiled files among the sources.
        .arg("-B")
        .arg(script)
        .arg(server.ready_file())
        .arg(rounds)
        .output()
        .expect("Python runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{out}\n{err}");
    let every_time = format!(": {rounds} of {rounds}");
    assert_eq!(out.lines().filter(|line| line.ends_with(&every_time)).count(), RACES, "{out}");
}
