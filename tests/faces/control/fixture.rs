//! A server in a temporary directory, and the commands that ask it. Nothing outlives it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use latchfs::file::mount::mounts;
use rustix::mount::UnmountFlags;
use rustix::process::{Pid, Signal};

pub use crate::common::served::wait_for;

/// The command under test.
pub fn latchfs(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latchfs"));
    command.current_dir(dir).env("NO_COLOR", "1").env("LATCHFS_LISTEN", "127.0.0.1:0");
    // The list of running servers: those of other tests are not in it.
    let runtime = dir.join("runtime");
    fs::create_dir_all(&runtime).unwrap();
    command.stdin(Stdio::null()).env("XDG_RUNTIME_DIR", runtime);
    command
}

/// True if something is mounted there.
pub fn is_mounted(path: &Path) -> bool {
    mounts::all().iter().any(|mount| mount.path == path)
}

/// What a command wrote to standard error.
pub fn error_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command wrote to standard output.
pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The same, as JSON, of a command that did it.
#[track_caller]
pub fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", error_text(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder whose mounts are taken away with it.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("mnt")).unwrap();
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// `latchfs serve` with the data and the mount point of this folder.
    pub fn serve(&self, arguments: &[&str]) -> Server {
        let mount = format!("docs={}", self.join("mnt").display());
        let mut all = vec!["serve", "--mount", &mount];
        all.extend(arguments);
        self.start(&all)
    }

    /// Any command that serves.
    pub fn start(&self, arguments: &[&str]) -> Server {
        self.start_with(arguments, &[])
    }

    /// The same, with variables.
    pub fn start_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Server {
        let ready = self.join("ready");
        let log = File::options().append(true).create(true).open(self.join("log")).unwrap();
        let child = latchfs(self.path())
            .args(arguments)
            .env("LATCHFS_DATA", self.join("data"))
            .env("LATCHFS_READY_FILE", &ready)
            .envs(variables.iter().copied())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Server { child, log: self.join("log") };
        wait_for("the server", || {
            if let Some(status) = server.child.try_wait().unwrap() {
                panic!("the server ended with {status}: {}", server.log());
            }
            ready.exists().then_some(())
        });
        server
    }

    /// A file on the mount.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.join("mnt").join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        // A warning about the machine is no part of the answer.
        latchfs(self.path()).env("RUST_LOG", "error").args(arguments).output().unwrap()
    }

    /// What the ready file says.
    pub fn ready(&self) -> serde_json::Value {
        serde_json::from_slice(&fs::read(self.join("ready")).unwrap()).unwrap()
    }

    /// Where the REST listener listens.
    pub fn listener(&self) -> SocketAddr {
        let ready = self.ready();
        let endpoint = ready["endpoint"].as_str().unwrap();
        endpoint.split('/').nth(2).unwrap().parse().unwrap()
    }

    /// Where a service listens.
    pub fn service(&self, service: &str) -> SocketAddr {
        let ready = self.ready();
        let endpoint = ready["endpoints"][service].as_str().unwrap();
        endpoint.split('/').nth(2).unwrap().parse().unwrap()
    }

    /// Runs a command of the server whose data is in this folder.
    pub fn ask(&self, arguments: &[&str]) -> Output {
        let socket = self.socket();
        self.run(&[arguments, &["--control", socket.to_str().unwrap()]].concat())
    }

    pub fn socket(&self) -> PathBuf {
        self.join("data/.latchfs/control.sock")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for mount in mounts::all().into_iter().rev() {
            if mount.path.starts_with(self.path()) {
                let _ = rustix::mount::unmount(&mount.path, UnmountFlags::DETACH);
            }
        }
    }
}

/// A server. Killed if the test has not ended it.
pub struct Server {
    pub child: Child,
    log: PathBuf,
}

impl Server {
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    /// Sends SIGTERM and waits for the end.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    pub fn wait(&mut self) -> ExitStatus {
        wait_for("the server's end", || self.child.try_wait().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.signal(Signal::TERM);
            let end = Instant::now() + Duration::from_secs(5);
            while self.child.try_wait().is_ok_and(|s| s.is_none()) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(2));
            }
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A `latchfs hold` that was granted. Killed when dropped.
pub struct Holding {
    pub child: Child,
    pub handle: u64,
}

impl Holding {
    pub fn start(folder: &Folder, arguments: &[&str]) -> Self {
        let mut child = latchfs(folder.path())
            .arg("hold")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let granted: serde_json::Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("not granted: {line:?}"));
        Self { child, handle: granted["handle"].as_u64().unwrap() }
    }

    pub fn wait(&mut self) -> ExitStatus {
        wait_for("the end of the hold", || self.child.try_wait().unwrap())
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// True if opening the file says that it is busy.
pub fn is_busy(path: &Path) -> bool {
    match File::open(path) {
        Ok(_) => false,
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => true,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}
