//! Space for deletions on a full disk. The log's file has blocks allocated past its end, and only
//! a request that deletes may use the last of them; the database file has blocks allocated for all
//! that the log holds, so that a checkpoint can always move it. The caller says which request
//! deletes.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};

use crate::sync::front_end::assert_may_block;

/// What a write is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// It stores something. On a full disk it is refused while there is still space to delete.
    Store,
    /// It deletes something. On a full disk it may use the space that is kept for deletions.
    Delete,
}

/// A request that stores something begins with this much space ahead of the log's end. What it
/// leaves is for deletions, which take some ten KiB each.
const AHEAD: u64 = 1 << 20;
/// Space is taken from the file system in pieces of at least and at most this size.
const PIECES: (u64, u64) = (1 << 20, 16 << 20);
/// A page of the log, and its header.
const FRAME: u64 = 4096 + 24;
/// The header of the log.
const HEADER: u64 = 32;
/// More than any log takes: the file system cannot give space in advance.
const UNKNOWN: u64 = u64::MAX;

/// The space that the files of a database have.
pub(super) struct Reserve {
    log: PathBuf,
    /// The database file. See [`super::Database`] for when it may be closed.
    main: Arc<File>,
    /// What the log's file has.
    owned: AtomicU64,
}

/// The log's file of a database.
pub(super) fn log_of(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push("-wal");
    PathBuf::from(path)
}

impl Reserve {
    /// Of a database that is open. On a full disk there may be nothing ahead yet.
    pub(super) fn new(file: &Path, main: Arc<File>) -> Self {
        let reserve = Self { log: log_of(file), main, owned: AtomicU64::new(0) };
        reserve.extend(0);
        reserve
    }

    /// True if a log of so many pages has space ahead for a request that stores something.
    pub(super) fn is_ample(&self, pages: u32) -> bool {
        end_of(pages) + AHEAD <= self.owned.load(Ordering::Relaxed)
    }

    /// As [`Reserve::is_ample`], after taking more space if there is too little. Not for event
    /// loops.
    pub(super) fn extend(&self, pages: u32) -> bool {
        if self.is_ample(pages) {
            return true;
        }
        assert_may_block("space for the log");
        let need = end_of(pages) + AHEAD;
        let wish = need + need.clamp(PIECES.0, PIECES.1);
        // What is taken for one file is not given back if there is too little for the other.
        let free = rustix::fs::fstatvfs(&self.main).map(|seen| seen.f_bavail * seen.f_frsize);
        let fits = free.is_ok_and(|free| free >= 2 * wish);
        (fits && self.take(wish)) || self.take(need)
    }

    /// To be called after a checkpoint, which may have given back what the database file had ahead.
    pub(super) fn renew(&self) {
        let owned = self.owned.load(Ordering::Relaxed);
        if !matches!(owned, 0 | UNKNOWN) && !self.take(owned) {
            // The next request that stores something tries again.
            self.owned.store(0, Ordering::Relaxed);
        }
    }

    /// Has the file system give the log's file blocks up to `length`, and the database file as many
    /// ahead. The lengths stay, since `SQLite` goes by them.
    fn take(&self, length: u64) -> bool {
        let blocks = |file: &File, from, length| {
            retry_on_intr(|| fallocate(file, FallocateFlags::KEEP_SIZE, from, length))
        };
        let taken = || -> std::io::Result<()> {
            let log = OpenOptions::new().write(true).open(&self.log)?;
            blocks(&log, 0, length)?;
            blocks(&self.main, self.main.metadata()?.len(), length)?;
            Ok(())
        };
        match taken().map_err(|error| Errno::from_io_error(&error)) {
            Ok(()) => self.owned.store(length, Ordering::Relaxed),
            Err(Some(Errno::NOSPC | Errno::DQUOT)) => return false,
            // A full disk is then met while the log is written, by deletions too.
            Err(errno) => {
                log::debug!("no space in advance for {}: {errno:?}", self.log.display());
                self.owned.store(UNKNOWN, Ordering::Relaxed);
            }
        }
        true
    }
}

fn end_of(pages: u32) -> u64 {
    HEADER + u64::from(pages) * FRAME
}
