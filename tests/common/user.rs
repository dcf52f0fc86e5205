//! A user without privilege: `fusermount3` mounts for it, the kernel passes nothing through.
//!
//! Whether users may open `/dev/fuse` is the machine's affair, so the server runs in a mount
//! namespace where they may, which a keeper holds while servers come and go.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal};

use super::need;
use super::program::Program;
use super::served::wait_for;

pub const USER: u32 = 65534;

/// Opens the device to everyone, says so, and holds the namespace until its input ends.
const KEEPER: &str = r#"
    mknod -m 666 "$1" c 10 229 && mount --bind "$1" /dev/fuse && echo ready && exec cat
"#;

/// A folder of the user's, and the namespace in which it is served.
pub struct Place {
    keeper: Child,
    folder: tempfile::TempDir,
}

impl Place {
    /// None if something is missing here.
    #[track_caller]
    pub fn new() -> Option<Self> {
        let programs = ["fusermount3", "setpriv", "unshare", "nsenter", "mount", "mknod"];
        if !need::fuse() || !need::root() || !programs.into_iter().all(need::client) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // The program is copied to where everybody can reach it.
        fs::copy(env!("CARGO_BIN_EXE_latchfs"), at("latchfs")).unwrap();
        for dir in ["home", "home/mnt"] {
            fs::create_dir(at(dir)).unwrap();
            std::os::unix::fs::chown(at(dir), Some(USER), Some(USER)).unwrap();
        }
        let mut keeper = Command::new("unshare")
            .args(["--mount", "sh", "-c", KEEPER, "keeper"])
            .arg(at("fuse"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = std::io::BufReader::new(keeper.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut { out }, &mut line).unwrap();
        assert_eq!(line, "ready\n");
        Some(Self { keeper, folder })
    }

    /// Shows a directory to the user, also one below another user's home.
    pub fn show(&self, directory: &Path) -> PathBuf {
        let shown = self.folder.path().join("shown");
        fs::create_dir(&shown).unwrap();
        let mount = Command::new("nsenter")
            .args([format!("--target={}", self.keeper.id()), "--mount".to_owned()])
            .args(["--", "mount", "--bind"])
            .args([directory, &shown])
            .output()
            .unwrap();
        assert!(mount.status.success(), "{}", complaint(&mount));
        shown
    }

    /// Mounts an overlay, whose upper layer is the user's, on the directory that [`Self::serve`]
    /// has the data in. Returns the upper layer; none where the kernel has no overlayfs.
    pub fn overlay_data(&self, lower: impl FnOnce(&Path)) -> Option<PathBuf> {
        for dir in ["lower", "upper", "work", "home/data"] {
            let path = self.folder.path().join(dir);
            fs::create_dir(&path).unwrap();
            std::os::unix::fs::chown(path, Some(USER), Some(USER)).unwrap();
        }
        let at = self.folder.path().display();
        lower(&self.folder.path().join("lower"));
        let layers = format!("lowerdir={at}/lower,upperdir={at}/upper,workdir={at}/work");
        let mount = Command::new("nsenter")
            .args([format!("--target={}", self.keeper.id()), "--mount".to_owned()])
            .args(["--", "mount", "-t", "overlay", "overlay", "-o", &layers])
            .arg(self.home().join("data"))
            .output()
            .unwrap();
        if !mount.status.success() {
            println!("SKIPPED: no overlayfs here: {}", complaint(&mount));
            return None;
        }
        Some(self.folder.path().join("upper"))
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A program, as the user, in the namespace.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args([format!("--target={}", self.keeper.id()), "--mount".to_owned()])
            .args(["--", "setpriv", "--clear-groups"])
            .args([format!("--reuid={USER}"), format!("--regid={USER}"), "--".to_owned()])
            // Inside: a working directory from outside would be another mount's.
            .args(["env", "-C"])
            .arg(self.home())
            .arg(program)
            .stdin(Stdio::null());
        command
    }

    /// A program that does as it is told, in that directory of the user's.
    #[track_caller]
    pub fn program(&self, dir: &str) -> Option<Program> {
        let mut command = self.command("env");
        // Not every user may run an interpreter that belongs to another.
        command.arg("-C").arg(self.home().join(dir)).arg("/usr/bin/python3");
        Program::by(command, Path::new("/"))
    }

    /// Runs a script to its end.
    pub fn shell(&self, script: &str) -> Output {
        self.command("sh").args(["-c", script]).output().unwrap()
    }

    /// `latchfs serve` with the mount on `mnt`, and further arguments.
    pub fn serve(&self, arguments: &[&str]) -> Server {
        let ready = self.home().join("ready");
        drop(fs::remove_file(&ready));
        let child = self
            .command(self.folder.path().join("latchfs"))
            .args(["serve", "--data", "data", "--mount", "docs=mnt", "--ready-file", "ready"])
            .args(["--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Server(Some(child));
        wait_for("the server", || {
            let ended = server.0.as_mut().unwrap().try_wait().unwrap().is_some();
            assert!(!ended, "it ended: {}", complaint(&server.wait()));
            ready.exists().then_some(())
        });
        server
    }

    pub fn is_mounted(&self) -> bool {
        let table = Path::new("/proc").join(self.keeper.id().to_string()).join("mountinfo");
        let point = self.home().join("mnt").display().to_string();
        fs::read_to_string(table).unwrap().contains(&point)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // With the keeper goes the namespace, and with that every mount in it.
        drop(self.keeper.stdin.take().map(|mut input| input.flush()));
        drop(self.keeper.wait());
    }
}

/// A server. Killed if the test has not ended it.
pub struct Server(Option<Child>);

impl Server {
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(self.0.as_ref().unwrap());
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub fn wait(&mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// What a program wrote to standard error.
fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
