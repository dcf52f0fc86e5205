//! A share of its own, mounted for one test, and a watchdog that turns a hang into a failure.
//!
//! The tests take turns: a program started by one test would otherwise hold, between fork and
//! exec, copies of the descriptors of another, and the second would see opens that it closed.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use latchfs::clock::{SystemClock, TimeSource};
use latchfs::file::mount::{Mount, MountOptions};
use latchfs::file::rules::{Access, ShareMode, SharePath};
use latchfs::file::service::{Share, ShareOptions};
use latchfs::journal::AccountJournal;
use latchfs::rules::{Client, Context, Owner};
use rustix::mount::UnmountFlags;

pub use crate::common::meeting::errno;
use crate::common::need;

/// A test that takes longer hangs.
const WATCHDOG: Duration = Duration::from_mins(2);

/// How long a test waits for what must come soon.
pub const SOON: Duration = Duration::from_secs(10);

static TURN: Mutex<()> = Mutex::new(());

/// Until it is dropped no other test runs.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A mounted share. Unmounted when dropped, lazily if it is in use.
pub struct Fixture {
    mount: Option<Mount>,
    pub share: Arc<Share>,
    /// What the share notes: refusals, removals.
    pub events: AccountJournal,
    pub mnt: PathBuf,
    /// The directory behind it.
    pub root: PathBuf,
    _watchdog: Sender<()>,
    tmp: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Fixture {
    /// Mounts with the options that `change` leaves; none if this machine cannot.
    #[track_caller]
    pub fn with(change: impl FnOnce(&mut MountOptions)) -> Option<Self> {
        Self::of(ShareOptions::default(), change)
    }

    /// The same, of a share with these options.
    #[track_caller]
    pub fn of(share: ShareOptions, change: impl FnOnce(&mut MountOptions)) -> Option<Self> {
        Self::in_dir(&std::env::temp_dir(), share, change)
    }

    /// The same, with the share's directory and the mount point below `dir`.
    #[track_caller]
    pub fn in_dir(
        dir: &Path,
        share: ShareOptions,
        change: impl FnOnce(&mut MountOptions),
    ) -> Option<Self> {
        if !need::fuse() {
            return None;
        }
        let turn = turn();
        let tmp = tempfile::tempdir_in(dir).unwrap();
        let [root, state, mnt] = ["root", "state", "mnt"].map(|name| tmp.path().join(name));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&mnt).unwrap();
        // Other users may enter where the mount lets them.
        for dir in [tmp.path(), &root] {
            rustix::fs::chmod(dir, rustix::fs::Mode::from_raw_mode(0o777)).unwrap();
        }
        let (clock, events) = (Arc::new(SystemClock), AccountJournal::default());
        let noted = events.clone();
        let share = Share::open_directory("test", &root, &state, share, clock, noted).unwrap();
        let share = Arc::new(share);
        let mut options = MountOptions::default();
        change(&mut options);
        let mount = Mount::start(Arc::clone(&share), &mnt, options).unwrap();
        let watchdog = watch(mnt.clone());
        Some(Self {
            mount: Some(mount),
            share,
            events,
            mnt,
            root,
            _watchdog: watchdog,
            tmp,
            _turn: turn,
        })
    }

    /// Mounts as most people do.
    #[track_caller]
    pub fn start() -> Option<Self> {
        Self::with(|_| {})
    }

    /// Mounts with a default share mode.
    #[track_caller]
    pub fn sharing(share: ShareMode) -> Option<Self> {
        Self::with(|options| options.default_share = share)
    }

    /// Mounts another share on a new directory of this one.
    pub fn below(&self, name: &str) -> Mount {
        let place = self.root.join(name);
        let [root, state] = ["below", "below-state"].map(|name| self.tmp.path().join(name));
        fs::create_dir(&place).unwrap();
        fs::create_dir(&root).unwrap();
        let (clock, events) = (Arc::new(SystemClock), AccountJournal::default());
        let options = ShareOptions::default();
        let share = Share::open_directory("below", &root, &state, options, clock, events).unwrap();
        Mount::start(Arc::new(share), &place, MountOptions::default()).unwrap()
    }

    /// Takes the mount away from the programs that use it. The share stays.
    pub fn unmount_lazily(&mut self) {
        if let Some(mut mount) = self.mount.take() {
            mount.unmount_lazily();
        }
    }

    /// A path on the mount.
    pub fn path(&self, name: &str) -> PathBuf {
        self.mnt.join(name)
    }

    /// Makes a file through the mount and waits until nobody has it open.
    pub fn make(&self, name: &str, bytes: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        self.idle();
        path
    }

    /// Waits until no file is in use: releases come after `close(2)` returned.
    pub fn idle(&self) {
        soon("no file is in use", || self.share.files_in_use() == 0);
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        drop(self.mount.take());
    }
}

/// Ends the whole run if the test has not ended in time: a program that hangs in a call on the
/// mount can be freed in no other way than by taking the mount away.
fn watch(mnt: PathBuf) -> Sender<()> {
    let (alive, ended) = mpsc::channel();
    let test = thread::current().name().unwrap_or("a test").to_owned();
    thread::spawn(move || {
        if ended.recv_timeout(WATCHDOG) == Err(RecvTimeoutError::Timeout) {
            let line = format!("{test} hangs: unmounting {} and giving up\n", mnt.display());
            drop(io::stderr().write_all(line.as_bytes()));
            // Whatever it says, the run ends here.
            let _ = rustix::mount::unmount(&mnt, UnmountFlags::DETACH | UnmountFlags::FORCE);
            std::process::abort();
        }
    });
    alive
}

/// Waits until `true_now`, which must be soon.
#[track_caller]
pub fn soon(what: &str, true_now: impl FnMut() -> bool) {
    assert!(within(SOON, true_now), "not within {SOON:?}: {what}");
}

/// Asks again and again until it is true or the time is over.
pub fn within(time: Duration, mut true_now: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + time;
    loop {
        if true_now() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The errno of an open of an existing file with `access`, which is closed at once.
pub fn open_errno(path: &Path, access: Access) -> i32 {
    errno(open(path, access))
}

/// Opens an existing file.
pub fn open(path: &Path, access: Access) -> io::Result<fs::File> {
    fs::OpenOptions::new()
        .read(access.contains(Access::R))
        .write(access.contains(Access::W))
        .open(path)
}

/// Ten times as much where time is not short.
pub fn rounds(usual: usize) -> usize {
    if std::env::var_os("LATCHFS_FULL").is_some() { usual * 10 } else { usual }
}

/// A caller of the engine beside the mount.
pub fn somebody() -> Context {
    let client = Arc::new(Client { session: 2, name: "beside".into() });
    let owner = Owner { client, pid: std::process::id(), program: None };
    Context::local(SystemClock.now(), owner, "test")
}

/// A path within the share.
pub fn share_path(text: &str) -> SharePath {
    SharePath::new(text).unwrap()
}
