//! Unmodified clients of Azure Files against a running latchfs, with its mount.
//!
//! `tests/run` installs them, pinned, into a folder of its own; without it they are skipped.

#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::need::{self, Need};
use common::served::{LATCHFS, Served};

fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/.cache/clients/bin/python")
}

#[test]
fn the_python_sdk_meets_the_mount() {
    let installed = || match fs::metadata(python()) {
        Ok(_) => Ok(()),
        Err(_) => Err("the Python SDK is not installed: tests/run does that".to_owned()),
    };
    if !need::fuse() || !need::met(Need::Clients, installed) {
        return;
    }
    let server = Served::start(&[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/meet.py");
    let run = Command::new(python())
        .arg(script)
        .arg(server.ready_file())
        .arg(LATCHFS)
        .output()
        .expect("Python runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.trim() == "met", "{out}\n{err}");
}
