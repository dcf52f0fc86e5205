//! Unmodified clients of Azure Files against a running latchfs, with its mount.
//!
//! `tests/run` installs them, pinned, into a folder of its own; without it they are skipped.

#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::need::{self, Need};

const LATCHFS: &str = env!("CARGO_BIN_EXE_latchfs");

/// How long a server may take to come up.
const START: Duration = Duration::from_secs(20);

fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/.cache/clients/bin/python")
}

/// A server on a folder of its own, stopped when dropped.
struct Server {
    child: Child,
    folder: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let child = Command::new(LATCHFS)
            .args(["serve", "--listen", "127.0.0.1:0", "--ready-file", "ready"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("latchfs starts");
        let server = Self { child, folder };
        let end = Instant::now() + START;
        while !server.ready().exists() {
            assert!(Instant::now() < end, "the server did not come up");
            std::thread::sleep(Duration::from_millis(5));
        }
        server
    }

    fn ready(&self) -> PathBuf {
        self.folder.path().join("ready")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let socket = self.folder.path().join("latchfs-data/.latchfs/control.sock");
        let stopped = Command::new(LATCHFS).arg("stop").arg("--control").arg(socket).status();
        if !stopped.is_ok_and(|status| status.success()) {
            drop(self.child.kill());
        }
        drop(self.child.wait());
    }
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
    let server = Server::start();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/meet.py");
    let run = Command::new(python())
        .arg(script)
        .arg(server.ready())
        .arg(LATCHFS)
        .output()
        .expect("Python runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.trim() == "met", "{out}\n{err}");
}
