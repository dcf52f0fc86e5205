//! A share on a real mount for one test, and the programs that are run on it.
//!
//! Decides what a test gets (an own directory, an own mount, a quiet environment) and that no test
//! hangs: a watchdog takes the mount away at a deadline, so that whoever waits on it comes back
//! with an error, and the test fails.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use latchfs::clock::SystemClock;
use latchfs::file::mount::{Mount, MountOptions};
use latchfs::file::service::{Share, ShareOptions};
use latchfs::journal::AccountJournal;
use rustix::mount::UnmountFlags;
use rustix::process::{Pid, Signal};

use crate::common::need;

/// The longest any test takes, on a slow and busy machine.
const DEADLINE: Duration = Duration::from_mins(3);

/// How long a test has to come back once its mount is gone, before the whole run is ended.
const GRACE: Duration = Duration::from_secs(20);

/// A mounted share and a scratch directory beside it.
pub struct Desk {
    mount: Option<Mount>,
    share: Arc<Share>,
    watchdog: Watchdog,
    /// Last: it goes when nothing is mounted in it any more.
    place: tempfile::TempDir,
}

/// True if the test may go on: a mount can be made, and the programs are installed.
#[track_caller]
pub fn ready(programs: &[&str]) -> bool {
    need::fuse() && programs.iter().all(|program| need::client(program))
}

impl Desk {
    pub fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for name in ["root", "mnt", "beside", "home"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let share = Share::open_directory(
            "programs",
            &place.path().join("root"),
            &place.path().join("state"),
            ShareOptions::default(),
            Arc::new(SystemClock),
            AccountJournal::default(),
        );
        let share = Arc::new(share.unwrap());
        let mnt = place.path().join("mnt");
        let mount = Mount::start(Arc::clone(&share), &mnt, MountOptions::default()).unwrap();
        Self { mount: Some(mount), share, watchdog: Watchdog::start(mnt), place }
    }

    /// A path on the mount.
    pub fn on(&self, path: &str) -> PathBuf {
        self.place.path().join("mnt").join(path)
    }

    /// The same path in the directory behind the mount.
    pub fn behind(&self, path: &str) -> PathBuf {
        self.place.path().join("root").join(path)
    }

    /// A path that is on no mount of ours.
    pub fn beside(&self, path: &str) -> PathBuf {
        self.place.path().join("beside").join(path)
    }

    /// Runs a shell script in the root of the mount, with `$BESIDE` for the scratch directory, and
    /// returns what it printed. It must succeed.
    pub fn sh(&self, script: &str) -> String {
        self.run("bash", &["-euo", "pipefail", "-c", script])
    }

    /// Runs a program in the root of the mount and returns what it printed. It must succeed.
    pub fn run(&self, program: &str, arguments: &[&str]) -> String {
        self.finish_run(program, self.command(program, arguments))
    }

    /// A command to be run with [`Self::finish_run`].
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.on(""))
            .env("HOME", self.place.path().join("home"))
            .env("BESIDE", self.beside(""))
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    pub fn finish_run(&self, what: &str, mut command: Command) -> String {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.process_group(0).spawn().unwrap();
        let group = child.id();
        self.watchdog.running.lock().unwrap().insert(group);
        let output = child.wait_with_output().unwrap();
        self.watchdog.running.lock().unwrap().remove(&group);
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let status = output.status;
        assert!(status.success(), "{what}: {status}\n--- stdout\n{out}\n--- stderr\n{err}");
        out.into_owned()
    }

    /// The end of every test: nobody uses the mount, and with the last descriptor the last open
    /// has left the table.
    pub fn finish(mut self) {
        self.mount.take().unwrap().unmount().unwrap();
        assert_eq!(self.share.files_in_use(), 0, "opens are left: {:?}", self.share);
    }
}

/// Takes the mount away when the time is over.
struct Watchdog {
    /// Process groups of the programs that are running.
    running: Arc<Mutex<BTreeSet<u32>>>,
    /// Dropped when the test is done.
    _done: Sender<()>,
}

impl Watchdog {
    fn start(mount: PathBuf) -> Self {
        let (done, end) = channel();
        let running: Arc<Mutex<BTreeSet<u32>>> = Arc::default();
        let groups = Arc::clone(&running);
        let test = thread::current().name().unwrap_or("a test").to_owned();
        thread::spawn(move || {
            if end.recv_timeout(DEADLINE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            eprintln!("{test}: not done after {DEADLINE:?}: its mount is taken away");
            take_away(&mount);
            for group in groups.lock().unwrap().iter() {
                let group = Pid::from_raw(group.cast_signed()).unwrap();
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
            if end.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{test}: still not done: the run ends here");
                std::process::exit(101);
            }
        });
        Self { running, _done: done }
    }
}

/// Force ends requests that are under way, lazily takes away the name; a user without privilege
/// has the helper.
fn take_away(mount: &Path) {
    let forced = rustix::mount::unmount(mount, UnmountFlags::FORCE | UnmountFlags::DETACH);
    if forced.is_err() {
        let _ = Command::new("fusermount3").arg("-uz").arg(mount).status();
    }
}

/// All paths below a directory with what they hold: `None` for a directory, the target for a
/// link, the bytes for a file.
pub fn tree(dir: &Path) -> Vec<(String, Option<Vec<u8>>)> {
    fn walk(root: &Path, dir: &Path, found: &mut Vec<(String, Option<Vec<u8>>)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                found.push((name, None));
                walk(root, &path, found);
            } else if meta.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                found.push((name, Some(target.to_str().unwrap().as_bytes().to_vec())));
            } else {
                found.push((name, Some(fs::read(&path).unwrap())));
            }
        }
    }
    let mut found = Vec::new();
    walk(dir, dir, &mut found);
    found.sort_unstable();
    found
}

/// Bytes that look like nothing and are the same every time.
pub fn noise(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    })
    .take(length)
    .collect()
}
