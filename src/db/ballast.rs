//! Space for deletions on a full disk: a file beside the database that is given back when a
//! deletion finds no space.
//!
//! The ballast is larger than the WAL, so that a checkpoint has room for all pages of the WAL in
//! the database file, and deletions have [`AHEAD`] bytes more. Requests that store something are
//! refused while the ballast is smaller. [`super::writer`] decides when it is given back.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};

/// Bytes of the ballast beyond the length of the WAL.
const AHEAD: u64 = 1 << 20;
/// The ballast grows by at least this much.
const PIECE: u64 = 1 << 20;

pub(super) struct Ballast {
    path: PathBuf,
    /// Bytes that the file has on the disk; `u64::MAX` where the file system cannot allocate in
    /// advance. Locked while the file changes: the writer and the checkpoint thread both ask.
    bytes: Mutex<u64>,
}

impl Ballast {
    /// That of a database whose WAL has so many bytes. On a full disk an earlier one may be
    /// smaller.
    pub(super) fn open(path: PathBuf, wal: u64) -> Self {
        // A copy of the file can be as long and have no space.
        let space = |found: std::fs::Metadata| found.len().min(found.blocks() * 512);
        let bytes = Mutex::new(std::fs::metadata(&path).map_or(0, space));
        let ballast = Self { path, bytes };
        ballast.covers(wal);
        ballast
    }

    /// True if the ballast is large enough for a WAL of so many bytes. Makes it larger if there is
    /// room on the disk.
    pub(super) fn covers(&self, wal: u64) -> bool {
        let (need, mut bytes) = (wal + AHEAD, self.lock());
        *bytes >= need || self.allocate(&mut bytes, need + PIECE) || self.allocate(&mut bytes, need)
    }

    /// Gives the space back.
    pub(super) fn release(&self) {
        let mut bytes = self.lock();
        if !matches!(std::mem::take(&mut *bytes), 0 | u64::MAX)
            && let Err(error) = self.shrink(0)
        {
            log::warn!("cannot give back the space of {}: {error}", self.path.display());
        }
    }

    /// Shrinks to what an empty WAL needs.
    pub(super) fn rest(&self) {
        let mut bytes = self.lock();
        // A file that stays long is as good; the next call tries again.
        if *bytes > AHEAD && *bytes < u64::MAX && self.shrink(AHEAD).is_ok() {
            *bytes = AHEAD;
        }
    }

    fn shrink(&self, bytes: u64) -> std::io::Result<()> {
        OpenOptions::new().write(true).open(&self.path)?.set_len(bytes)
    }

    fn allocate(&self, now: &mut u64, bytes: u64) -> bool {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let allocated = options.open(&self.path).and_then(|file| {
            let allocated = fallocate_to(&file, bytes);
            if allocated.is_err() {
                // Some file systems keep the part that there was room for.
                file.set_len(*now)?;
            }
            Ok(allocated?)
        });
        match allocated.map_err(|error| Errno::from_io_error(&error)) {
            Ok(()) => *now = bytes,
            Err(Some(Errno::NOSPC | Errno::DQUOT)) => return false,
            // A full disk is then met by deletions too.
            Err(Some(Errno::OPNOTSUPP | Errno::NOSYS)) => {
                log::debug!("no space in advance for {}", self.path.display());
                *now = u64::MAX;
            }
            // Where files may not be longer, the WAL meets that limit itself. A lack of descriptors
            // may pass: the next request tries again.
            Err(errno) => log::debug!("no ballast {} now: {errno:?}", self.path.display()),
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fallocate_to(file: &File, bytes: u64) -> Result<(), Errno> {
    retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ballast_grows_with_the_wal_and_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ballast");
        let length = || path.metadata().unwrap().len();
        let ballast = Ballast::open(path.clone(), 0);
        assert!(length() >= AHEAD);
        assert!(ballast.covers(10 << 20) && length() >= AHEAD + (10 << 20));
        ballast.release();
        assert_eq!(length(), 0);
        assert!(ballast.covers(0) && length() >= AHEAD);
        ballast.rest();
        assert_eq!(length(), AHEAD);
        assert!(ballast.covers(10 << 20) && length() >= AHEAD + (10 << 20), "it grows again");
    }

    #[test]
    fn a_ballast_that_has_a_length_and_no_space_is_allocated_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ballast");
        File::create(&path).unwrap().set_len(8 << 20).unwrap();
        let ballast = Ballast::open(path.clone(), 0);
        assert!(ballast.covers(0));
        assert!(path.metadata().unwrap().blocks() * 512 >= AHEAD);
    }

    #[test]
    fn a_ballast_that_cannot_be_made_for_a_moment_is_made_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none/ballast");
        let ballast = Ballast::open(path.clone(), 0);
        assert!(ballast.covers(0), "a request goes on without");
        std::fs::create_dir(folder.path().join("none")).unwrap();
        assert!(ballast.covers(0));
        assert!(path.metadata().unwrap().len() >= AHEAD);
    }
}
