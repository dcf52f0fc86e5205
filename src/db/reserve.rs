//! Space for deletions on a full disk. The log's file has blocks allocated past its end, and only
//! a request that deletes may use the last of them; the database file has blocks allocated for all
//! that the log holds, so that a checkpoint can always move it.
//! The caller says which request deletes.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, StatVfs, fallocate, fstatvfs};
use rustix::io::{Errno, retry_on_intr};

use super::DbError;
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
/// With less than this ahead of the log's end, a checkpoint comes before the next deletion.
const SCARCE: u64 = AHEAD / 2;
/// More than a deletion writes, as a rule.
const DELETION: u64 = 32 << 10;
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
    files: Arc<LockedFile>,
    /// What the log's file has, as long as the database file has as much ahead.
    owned: AtomicU64,
    /// What the log's file has, which it keeps while the database is open.
    log_owned: AtomicU64,
}

/// The file that `SQLite` locks. To be closed after all connections: closing any descriptor of such
/// a file ends the locks that `SQLite` holds on it in this process.
pub(super) struct LockedFile {
    pub(super) main: File,
    /// Device and inode number of the log, which has its name as long as a connection is open.
    log: Option<(u64, u64)>,
}

impl LockedFile {
    /// That of a database that is open.
    pub(super) fn open(file: &Path) -> Result<Self, DbError> {
        match OpenOptions::new().read(true).write(true).open(file) {
            Ok(main) => {
                let log = std::fs::metadata(log_of(file)).ok();
                Ok(Self { main, log: log.as_ref().map(identity) })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(DbError::Io(format!("{} is gone", file.display())))
            }
            Err(error) => Err(DbError::from_io("open", file, &error)),
        }
    }

    /// An error if `file` is not the name of the open database file any more, or if the log has
    /// lost its own: what is written to such a log is lost with the process.
    pub(super) fn check_place(&self, file: &Path) -> Result<(), DbError> {
        check_place(&self.main, file)?;
        self.log.map_or(Ok(()), |log| check_identity(log, &log_of(file)))
    }
}

/// An error if `path` is not the name of the open file or folder `opened` any more.
pub(crate) fn check_place(opened: &File, path: &Path) -> Result<(), DbError> {
    // What cannot be looked at is no proof that the name leads elsewhere.
    let Ok(own) = opened.metadata() else { return Ok(()) };
    check_identity(identity(&own), path)
}

fn check_identity(own: (u64, u64), path: &Path) -> Result<(), DbError> {
    match std::fs::metadata(path) {
        Ok(found) if identity(&found) == own => Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => Ok(()),
        _ => Err(DbError::Gone { file: path.to_path_buf() }),
    }
}

fn identity(file: &std::fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// The log's file of a database.
pub(super) fn log_of(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push("-wal");
    PathBuf::from(path)
}

fn allocated(file: &std::fs::Metadata) -> u64 {
    file.blocks() * 512
}

/// Some file systems do not tell how much they have.
fn has_room(seen: &StatVfs, bytes: u64) -> bool {
    seen.f_blocks == 0 || seen.f_bavail.saturating_mul(seen.f_frsize) >= bytes
}

impl Reserve {
    /// Of a database that is open and whose log has so many pages. On a full disk there may be
    /// nothing ahead yet.
    pub(super) fn new(file: &Path, files: Arc<LockedFile>, pages: u32) -> Self {
        let log = log_of(file);
        let has = std::fs::metadata(&log).map_or(0, |log| allocated(&log));
        let (owned, log_owned) = (AtomicU64::new(0), AtomicU64::new(has));
        let reserve = Self { log, files, owned, log_owned };
        reserve.extend(pages);
        reserve
    }

    /// True if a log of so many pages has space ahead for a request that stores something.
    pub(super) fn is_ample(&self, pages: u32) -> bool {
        end_of(pages) + AHEAD <= self.owned.load(Ordering::Relaxed)
    }

    /// True if deletions behind a log of so many pages are about to use up what the log has, and a
    /// log that begins again has more for them.
    pub(super) fn is_scarce(&self, pages: u32) -> bool {
        self.ahead(pages) < SCARCE && self.ahead(0) >= SCARCE
    }

    /// How many deletions the log has space for behind so many pages; one at least, which may still
    /// find space.
    pub(super) fn deletions_ahead(&self, pages: u32) -> usize {
        usize::try_from(self.ahead(pages) / DELETION).unwrap_or(usize::MAX).max(1)
    }

    /// What the log has behind so many pages.
    fn ahead(&self, pages: u32) -> u64 {
        self.log_owned.load(Ordering::Relaxed).saturating_sub(end_of(pages))
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
        let fits = self.has_room(2 * wish);
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
        let taken = || -> std::io::Result<bool> {
            let main = &self.files.main;
            let log = OpenOptions::new().write(true).open(&self.log)?;
            let parts = [(&log, 0, length), (main, main.metadata()?.len(), length)];
            // A file keeps what it was given before the disk was full, and cannot give it back
            // while others write to it: so nothing is taken unless all of it is there.
            let mut missing = 0;
            for (file, from, length) in &parts {
                missing += (from + length).saturating_sub(allocated(&file.metadata()?));
            }
            if !self.has_room(missing) {
                return Ok(false);
            }
            for (file, from, length) in parts {
                allocate(file, from, length)?;
            }
            Ok(true)
        };
        match taken().map_err(|error| Errno::from_io_error(&error)) {
            Ok(true) => self.owns(length),
            Ok(false) => return false,
            Err(Some(errno)) if is_full(errno) => return false,
            // A full disk is then met while the log is written, by deletions too.
            Err(Some(Errno::OPNOTSUPP | Errno::NOSYS)) => {
                log::debug!("no space in advance for {}", self.log.display());
                self.owns(UNKNOWN);
            }
            // It may pass, as a lack of descriptors does: the next request tries again.
            Err(errno) => {
                log::debug!("no space in advance for {} now: {errno:?}", self.log.display());
            }
        }
        true
    }

    fn owns(&self, length: u64) {
        self.owned.store(length, Ordering::Relaxed);
        self.log_owned.fetch_max(length, Ordering::Relaxed);
    }

    fn has_room(&self, bytes: u64) -> bool {
        fstatvfs(&self.files.main).map_or(true, |seen| has_room(&seen, bytes))
    }
}

/// Gives a file blocks for this range. Its length stays.
fn allocate(file: &File, from: u64, length: u64) -> Result<(), Errno> {
    retry_on_intr(|| fallocate(file, FallocateFlags::KEEP_SIZE, from, length))
}

fn is_full(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::FBIG)
}

fn end_of(pages: u32) -> u64 {
    HEADER + u64::from(pages) * FRAME
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_that_cannot_be_taken_for_a_moment_is_taken_later() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("test.db");
        std::fs::write(&file, "").unwrap();
        let reserve = Reserve::new(&file, Arc::new(LockedFile::open(&file).unwrap()), 0);
        assert!(reserve.extend(0), "a request goes on without");
        assert!(!reserve.is_ample(0));
        std::fs::write(log_of(&file), "").unwrap();
        assert!(reserve.extend(0) && reserve.is_ample(0));
        assert!(allocated(&std::fs::metadata(log_of(&file)).unwrap()) >= AHEAD);
    }
}
