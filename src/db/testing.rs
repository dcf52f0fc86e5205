//! What tests of the stores and of the engine share: child processes, file systems of a given size.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;

use super::{Database, DbError, Schema, SyncMode, Tuning};

/// What a database did since it was opened, as its WAL counted it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stats {
    pub(crate) commits: u64,
    pub(crate) requests: u64,
    pub(crate) largest_group: u64,
    pub(crate) checkpoints: u64,
    pub(crate) holds: u64,
    pub(crate) waits: u64,
    /// Pages in the WAL after the last commit.
    pub(crate) log_pages: u32,
}

impl Database {
    /// As [`Database::open`], with sizes and times of the caller's.
    pub(crate) fn open_with(
        path: &Path,
        schema: &Schema,
        sync: SyncMode,
        tuning: Tuning,
    ) -> Result<Self, DbError> {
        let opened = Self::open_hooked(path, schema, sync, tuning, |_| Ok((None, ())));
        opened.map(|(database, ())| database)
    }

    pub(crate) fn stats(&self) -> Stats {
        let (counters, log_pages) = (&self.wal.counters, self.wal.pages());
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            commits: load(&counters.commits),
            requests: load(&counters.requests),
            largest_group: load(&counters.largest_group),
            checkpoints: load(&counters.checkpoints),
            holds: load(&counters.holds),
            waits: load(&counters.waits),
            log_pages,
        }
    }
}

/// One ignored test of this binary, in a process of its own. Takes the function and not its name: a
/// name that no test has runs nothing, and the child succeeds.
pub(crate) fn child<F: Fn()>(_: F) -> Command {
    let path = std::any::type_name::<F>();
    let (_, test) = path.split_once("::").expect("the path of a function begins with its crate");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command
}

/// A mounted file system of a given size, unmounted when dropped.
pub(crate) struct Tmpfs(TempDir);

impl Tmpfs {
    /// `None`, and a line on the output, where this process may not mount.
    pub(crate) fn mount(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "latchfs-test"]);
        match mount.arg(dir.path()).output() {
            Ok(output) if output.status.success() => Some(Self(dir)),
            Ok(output) => {
                println!("SKIPPED: no tmpfs: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            Err(error) => {
                println!("SKIPPED: no mount command: {error}");
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the space that is left.
    pub(crate) fn fill(&self) {
        fill(&self.ballast());
    }

    /// Takes all the space that is left but for so many bytes.
    pub(crate) fn fill_but(&self, bytes: u64) {
        self.fill();
        let ballast = std::fs::OpenOptions::new().write(true).open(self.ballast()).unwrap();
        let length = ballast.metadata().unwrap().len();
        ballast.set_len(length - bytes).unwrap();
    }

    /// Bytes that are free.
    pub(crate) fn free(&self) -> u64 {
        free(self.path())
    }

    /// Gives back the space that [`Tmpfs::fill`] took.
    pub(crate) fn empty(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast of all space")
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        unmount(self.path());
    }
}

/// A mounted ext4 of 24 MB with blocks of 1 KiB, unmounted when dropped.
pub(crate) struct SmallBlocks(TempDir);

impl SmallBlocks {
    /// `None`, and a line on the output, where this process cannot make one.
    pub(crate) fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(24 << 20).unwrap();
        let mut make = Command::new("mkfs.ext4");
        make.args(["-q", "-b", "1024", "-m", "0"]).arg(image.path());
        let mut mount = Command::new("mount");
        // The loop device keeps the image, whose name goes here.
        mount.args(["-o", "loop", "-t", "ext4"]).arg(image.path()).arg(dir.path());
        for command in [&mut make, &mut mount] {
            match command.output() {
                Ok(output) if output.status.success() => {}
                Ok(output) => {
                    println!("SKIPPED: no ext4: {}", String::from_utf8_lossy(&output.stderr));
                    return None;
                }
                Err(error) => {
                    println!("SKIPPED: no ext4: {command:?}: {error}");
                    return None;
                }
            }
        }
        Some(Self(dir))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallBlocks {
    fn drop(&mut self) {
        unmount(self.path());
    }
}

/// Takes all the space that is left on the file system of `ballast`, for this file.
pub(crate) fn fill(ballast: &Path) {
    let folder = ballast.parent().unwrap();
    let mut ballast = std::fs::File::create(ballast).unwrap();
    // A checkpoint under way may give space back in between.
    for _ in 0..100 {
        for piece in [1 << 20, 4096, 1] {
            while ballast.write(&vec![1; piece]).is_ok_and(|written| written == piece) {}
        }
        if free(folder) == 0 {
            return;
        }
    }
    panic!("the file system does not get full: {} bytes are free", free(folder));
}

fn free(folder: &Path) -> u64 {
    let seen = rustix::fs::statvfs(folder).unwrap();
    seen.f_bavail * seen.f_frsize
}

fn unmount(folder: &Path) {
    let status = Command::new("umount").arg("-l").arg(folder).status();
    if !status.is_ok_and(|status| status.success()) {
        println!("cannot unmount {}", folder.display());
    }
}
