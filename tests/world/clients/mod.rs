//! Unmodified clients of Azure Files against a running latchfs, with its mount.
//!
//! `tests/run` installs them, pinned, into a folder of its own; without it they are skipped.

mod api;
mod blob;
mod libraries;
mod programs;
mod queue;
mod races;
mod table;
#[cfg(feature = "tls")]
mod tls;

use std::path::Path;
use std::process::Command;

use crate::common::need::{self, python};
use crate::common::served::{LATCHFS, Served};

/// Plays every round of the Python SDK, called as its users call that face of it.
fn rounds_of_python(face: &str) {
    if !need::fuse() || !need::installed(&[&python()]) {
        return;
    }
    let server = Served::start(&[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world/clients/file/rounds.py");
    let run = Command::new(python())
        // No compiled files among the sources.
        .arg("-B")
        .arg(script)
        .arg(server.ready_file())
        .args([LATCHFS, face])
        .output()
        .expect("Python runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.trim() == face, "{out}\n{err}");
}

#[test]
fn the_python_sdk_does_all_it_can() {
    rounds_of_python("sync");
}

#[test]
fn the_python_sdk_does_all_it_can_in_its_aio_form_too() {
    rounds_of_python("aio");
}
