//! The races of docs/reproduce.md, by the Python SDKs and the HTTP API of the test bench; the
//! report finds those that lose data, and nothing in the cures.

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
    let shown = server.latchfs(&["report", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let errors = report["findings"].as_array().unwrap().iter();
    let mut errors: Vec<_> = errors
        .filter(|one| one["level"] == "error")
        .map(|one| {
            (one["object"].as_str().unwrap(), one["rule"].as_str().unwrap(), one["count"].as_u64())
        })
        .collect();
    errors.sort();
    let count = rounds.parse().ok();
    let wanted = [
        ("blob:box/create-race*", "check-then-create", count),
        ("blob:box/lost-answer*", "blind-retry", count),
        ("blob:box/lost-update*", "lost-update", count),
    ];
    // Elsewhere the threads of a process cannot be told apart.
    let expected = if tells_threads() { &wanted[..] } else { &[] };
    assert_eq!(errors, expected, "{report:#}");
}

/// Whether the clock sequence of Python's request IDs is that of the thread.
fn tells_threads() -> bool {
    let program = "import uuid; print(len({uuid.uuid1().clock_seq for _ in range(9)}))";
    let run = Command::new(python()).args(["-c", program]).output().expect("Python runs");
    run.stdout == b"1\n"
}
