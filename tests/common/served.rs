//! A latchfs that runs as its users run it: the program itself, with its mount and its listener,
//! in a folder that goes with it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::UnmountFlags;
use serde_json::Value;

/// The program under test.
pub const LATCHFS: &str = env!("CARGO_BIN_EXE_latchfs");

/// How long a server may take to come up, and a condition to come true.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A running server on a folder of its own. Stopped when dropped.
pub struct Served {
    child: Child,
    folder: tempfile::TempDir,
    ready: Value,
}

impl Served {
    /// Starts `latchfs serve` in a new folder, on a free port, with `args` added, and waits until
    /// it is usable.
    pub fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// The same, with these variables.
    pub fn start_with(args: &[&str], variables: &[(&str, &Path)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (child, ready) = launch(folder.path(), args, variables);
        Self { child, folder, ready }
    }

    /// The same, started by another program, which is given the program and its arguments last.
    pub fn start_by(wrapper: &[&str], args: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (child, ready) = launch_by(wrapper, folder.path(), args, &[]);
        Self { child, folder, ready }
    }

    /// The folder it runs in: data in `latchfs-data`, the mount on `latchfs-mnt`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the share `share` is mounted.
    pub fn mount(&self) -> PathBuf {
        self.folder().join("latchfs-mnt")
    }

    /// The directory behind the share `share`.
    pub fn data(&self) -> PathBuf {
        self.folder().join("latchfs-data/devstoreaccount1/files/share")
    }

    /// The file that says where everything is.
    pub fn ready_file(&self) -> PathBuf {
        self.folder().join("ready")
    }

    /// What the ready file says of `key`.
    pub fn told(&self, key: &str) -> &str {
        self.ready[key].as_str().unwrap_or_else(|| panic!("no {key} in {}", self.ready))
    }

    /// Where the REST listener listens.
    pub fn addr(&self) -> SocketAddr {
        let endpoint = self.told("endpoint");
        let host = endpoint.split('/').nth(2).expect("a URL has a host");
        host.parse().expect("the host is an address")
    }

    /// A command of the same program, in the same folder.
    pub fn latchfs(&self, args: &[&str]) -> Command {
        let mut command = Command::new(LATCHFS);
        command.current_dir(self.folder()).env("NO_COLOR", "1").args(args);
        command
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, as a crash would, and the same start again on what is left.
    pub fn crash_and_restart(&mut self, args: &[&str]) {
        self.crash();
        self.restart(args);
    }

    /// SIGKILL, as a crash would.
    pub fn crash(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ended");
        fs::remove_file(self.ready_file()).expect("the file of the killed one");
    }

    /// A start on what a crash left.
    pub fn restart(&mut self, args: &[&str]) {
        (self.child, self.ready) = launch(self.folder.path(), args, &[]);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let stopped = self.latchfs(&["stop", "--control", self.told("control")]).output();
        if !stopped.is_ok_and(|output| output.status.success()) {
            drop(self.child.kill());
            // Nothing may be mounted there any more.
            let _ = rustix::mount::unmount(self.mount(), UnmountFlags::DETACH);
        }
        drop(self.child.wait());
    }
}

fn launch(folder: &Path, args: &[&str], variables: &[(&str, &Path)]) -> (Child, Value) {
    launch_by(&[], folder, args, variables)
}

fn launch_by(
    wrapper: &[&str],
    folder: &Path,
    args: &[&str],
    variables: &[(&str, &Path)],
) -> (Child, Value) {
    let (program, before) = match wrapper {
        [] => (LATCHFS, Vec::new()),
        [program, before @ ..] => (*program, [before, &[LATCHFS]].concat()),
    };
    let mut child = Command::new(program)
        .args(before)
        .args(["serve", "--listen", "127.0.0.1:0", "--ready-file", "ready"])
        .args(args)
        .envs(variables.iter().copied())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("latchfs starts");
    let file = folder.join("ready");
    wait_for("the server to be usable", || {
        if let Some(status) = child.try_wait().expect("its state") {
            panic!("the server ended at once: {status}");
        }
        file.exists().then_some(())
    });
    let text = fs::read_to_string(&file).expect("the ready file");
    (child, serde_json::from_str(&text).expect("the ready file is JSON"))
}

/// Waits until `condition` gives something.
#[track_caller]
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < end, "waited for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
