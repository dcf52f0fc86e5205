//! The Node SDK, through a round of what its users do: a script
//! that is given a server of its own and fails where an answer is not as expected.
//!
//! What a round holds is in its script: `node/` for the SDK.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::need::{self, Need};
use crate::common::served::{LATCHFS, Served};

/// Where `tests/run` puts clients.
fn cache(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/.cache").join(path)
}

/// True if all of these are installed, and a mount can be made.
#[track_caller]
fn installed(files: &[&Path]) -> bool {
    let there = || match files.iter().find(|file| !file.exists()) {
        None => Ok(()),
        Some(file) => Err(format!("{} is not installed: tests/run does that", file.display())),
    };
    need::fuse() && need::met(Need::Clients, there)
}

/// Plays the round of `script`: `INTERPRETER SCRIPT READY_FILE PROGRAM`, which says `met`.
#[track_caller]
fn play(mut interpreter: Command, script: &str, program: &Path) {
    let server = Served::start(&[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(script);
    let run = interpreter.arg(script).arg(server.ready_file()).arg(program).output();
    let run = run.expect("the interpreter runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let last = out.lines().last().unwrap_or_default();
    assert!(run.status.success() && last.starts_with("met"), "{out}\n{err}");
}

#[test]
fn the_node_sdk_does_all_it_can() {
    let sdk = cache("node/node_modules/@azure/storage-file-share");
    if need::client("node") && installed(&[&sdk]) {
        play(Command::new("node"), "node/round.mjs", Path::new(LATCHFS));
    }
}
