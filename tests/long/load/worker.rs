//! A process on the mount: opens with share modes, reads, writes, locks, makes, removes, renames.
//!
//! It is this very test program, started again with [`MOUNT`] set.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use latchfs::client;
use latchfs::file::rules::ShareMode;
use rustix::fs::FlockOperation;

use crate::load::random::Random;
use crate::load::{Counts, some_file, time};

/// Where the mount is.
pub const MOUNT: &str = "LATCHFS_LOAD_MOUNT";

/// Where the random numbers start.
pub const SEED: &str = "LATCHFS_LOAD_SEED";

/// What an open may come to. The kernel looks a name up and then opens what it found: if that is
/// gone by then it looks once more, and tells the program (`ENOENT`) if it happened again, also
/// one that would have created the file. If it is another file's by then, twice in one call and
/// each time under other opens, the program sees `ESTALE`. If all opens of it were ended by force
/// in between the kernel says `EIO`, as to those.
const NOT_OPENED: [i32; 4] = [libc::EBUSY, libc::ENOENT, libc::ESTALE, libc::EIO];

/// The most files it has open at a time.
const HELD_MAX: usize = 4;

/// Marks what should not have come.
pub const UNEXPECTED: &str = "unexpected, ";

/// How a line with a count starts.
const MARK: &str = "count";

/// What and how often, of a line that says so.
pub fn read_count(line: &str) -> Option<(&str, u64)> {
    let (count, what) = line.strip_prefix(MARK)?.trim().split_once(' ')?;
    Some((what, count.parse().ok()?))
}

/// Does nothing unless the load has started it.
#[test]
fn this_process_works_on_the_mount() {
    let Some(mount) = std::env::var_os(MOUNT) else { return };
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let mut worker = Worker {
        mount: mount.into(),
        random: Random::new(seed),
        held: Vec::new(),
        counts: Counts::new(),
    };
    let end = Instant::now() + time();
    while Instant::now() < end {
        worker.step();
    }
    // One write: the harness writes to the same place.
    let lines = worker.counts.iter().map(|(what, count)| format!("{MARK} {count} {what}\n"));
    println!("\n{}", lines.collect::<String>());
}

struct Worker {
    mount: PathBuf,
    random: Random,
    held: Vec<File>,
    counts: Counts,
}

impl Worker {
    fn step(&mut self) {
        let path = self.mount.join(some_file(&mut self.random));
        match self.random.below(14) {
            0..=3 => self.open(&path),
            4 | 12 | 13 => self.create(&path),
            5 => self.share(),
            6 => self.lock(),
            7 => self.read_and_write(),
            8 => {
                let done = fs::remove_file(&path);
                self.note("unlink", &done, &[libc::EBUSY, libc::ENOENT]);
            }
            9 => {
                let to = self.mount.join(some_file(&mut self.random));
                let done = fs::rename(&path, to);
                self.note("rename", &done, &[libc::EBUSY, libc::ENOENT]);
            }
            10 => {
                let folder = path.parent().unwrap_or(&path);
                let listed = fs::read_dir(folder).map(Iterator::count);
                self.note("list", &listed, &[]);
            }
            _ => {
                self.held.pop();
            }
        }
    }

    fn open(&mut self, path: &Path) {
        let (read, write) = self.random.pick(&[(true, false), (true, true), (false, true)]);
        let opened = OpenOptions::new().read(read).write(write).open(path);
        self.note("open", &opened, &NOT_OPENED);
        self.hold(opened);
    }

    fn create(&mut self, path: &Path) {
        let opened = OpenOptions::new().write(true).create(true).truncate(true).open(path);
        self.note("create", &opened, &NOT_OPENED);
        if let Ok(file) = &opened {
            let written = file.write_all_at(b"0123456789", 0);
            self.note("first write", &written, &[libc::EIO]);
        }
        self.hold(opened);
    }

    fn hold(&mut self, opened: io::Result<File>) {
        if self.held.len() == HELD_MAX {
            self.held.remove(0);
        }
        self.held.extend(opened);
    }

    /// Any of those it has open may have been closed by force: that is `EIO`.
    fn share(&mut self) {
        let Some(file) = self.some_held() else { return };
        let share = self.random.pick(&["none", "r", "rw", "rwd", "rd", "w"]);
        let set = client::set_share(&file, ShareMode::parse(share).unwrap());
        self.note("set share", &set, &[libc::EBUSY, libc::EIO]);
    }

    fn lock(&mut self) {
        let Some(file) = self.some_held() else { return };
        let how = self.random.pick(&[
            FlockOperation::NonBlockingLockShared,
            FlockOperation::NonBlockingLockExclusive,
            FlockOperation::Unlock,
        ]);
        let locked = rustix::fs::fcntl_lock(&file, how).map_err(io::Error::from);
        // EBADF: not open for that kind of lock.
        self.note("lock", &locked, &[libc::EAGAIN, libc::EBADF, libc::EIO]);
    }

    fn read_and_write(&mut self) {
        let Some(file) = self.some_held() else { return };
        let read = file.read_at(&mut [0; 16], 0);
        self.note("read", &read, &[libc::EBADF, libc::EIO]);
        let written = file.write_all_at(b"abcdefghij", 0);
        self.note("write", &written, &[libc::EBADF, libc::EIO]);
    }

    /// A second descriptor of one of those it has open.
    fn some_held(&mut self) -> Option<File> {
        if self.held.is_empty() {
            return None;
        }
        let number = self.random.below(self.held.len());
        Some(self.held[number].try_clone().unwrap())
    }

    /// Counts what became of it, and marks what is not one of `expected`.
    fn note<T>(&mut self, what: &str, done: &io::Result<T>, expected: &[i32]) {
        let came_to = match done {
            Ok(_) => format!("{what}: done"),
            Err(error) => {
                let known = error.raw_os_error().is_some_and(|errno| expected.contains(&errno));
                format!("{}{what}: {error}", if known { "" } else { UNEXPECTED })
            }
        };
        *self.counts.entry(came_to).or_default() += 1;
    }
}
