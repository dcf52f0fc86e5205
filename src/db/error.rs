//! Errors of the database, each with the name of the file.
//! The front end of a service decides how such an error is answered.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use rusqlite::ErrorCode;
use rusqlite::ffi;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::place::wal_of;

/// Why the database could not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DbError {
    /// The disk, or the quota of its owner, is full, or a file is as long as the process may make
    /// one (`ulimit -f`).
    #[error("no space left on the disk of {}", file.display())]
    Full { file: PathBuf },
    /// Too many requests wait, or another process holds the database.
    #[error("the database is busy: {0}")]
    Busy(String),
    /// The file, or a row in it, cannot be understood.
    #[error("{} is damaged: {why}", file.display())]
    Damaged {
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A newer version of this program wrote the file.
    #[error(
        "{} has format {found}, this program knows formats up to {known}: \
         use the newer program, or another data directory",
        file.display()
    )]
    NewerFormat {
        file: PathBuf,
        /// The version in the file.
        found: u32,
        /// The version of this program.
        known: u32,
    },
    /// The file is a database, but not of this program, or of a version it no longer reads.
    #[error("{} cannot be used: {why}", file.display())]
    UnknownFormat { file: PathBuf, why: String },
    /// The process has no file descriptor left.
    #[error("too many open files while opening {}: raise the limit (ulimit -n)", file.display())]
    TooManyFiles {
        /// The file that was to be opened.
        file: PathBuf,
    },
    /// The file or its directory cannot be written.
    #[error(
        "{} cannot be written: it, its directory or its file system is read-only",
        file.display()
    )]
    ReadOnly { file: PathBuf },
    /// The file, or a folder beside it, has lost its name since it was opened: what is written to
    /// it would be lost with the process.
    #[error(
        "{} was removed, moved or replaced while the server runs, and nothing more is written: put \
         it back, or stop the server and start it again",
        file.display()
    )]
    Gone {
        /// The file or folder.
        file: PathBuf,
    },
    /// The request's closure panicked. Its changes were rolled back.
    #[error("the request failed in the database: {0}")]
    Panicked(String),
    /// The database is being closed.
    #[error("the database is being closed")]
    Closed,
    #[error("{0}")]
    Io(String),
}

thread_local! {
    /// The file of the request that runs on this thread, for errors that have to name it.
    static CURRENT: RefCell<Option<Arc<Path>>> = const { RefCell::new(None) };
    /// The last error of SQLite on this thread that can undo a whole transaction.
    static LAST: RefCell<Option<DbError>> = const { RefCell::new(None) };
}

/// While it lives, errors on this thread name `file`.
pub(super) struct Naming(Option<Arc<Path>>);

impl Naming {
    pub(super) fn file(file: &Arc<Path>) -> Self {
        Self(CURRENT.replace(Some(Arc::clone(file))))
    }
}

impl Drop for Naming {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

fn current_file() -> PathBuf {
    CURRENT.with_borrow(|file| match file {
        Some(file) => file.to_path_buf(),
        None => PathBuf::from("the database"),
    })
}

/// Why `SQLite` gave up a transaction with several requests in it: the last serious error on this
/// thread. The closure that met it has turned it into an error of its own type.
pub(super) fn take_last_serious() -> DbError {
    LAST.take().unwrap_or_else(|| DbError::Io("the database gave up a transaction".to_owned()))
}

/// True if the last serious error on this thread is a full disk.
pub(super) fn last_was_full() -> bool {
    LAST.with_borrow(|last| matches!(last, Some(DbError::Full { .. })))
}

/// Forget earlier errors, before a transaction begins.
pub(super) fn forget_last_serious() {
    LAST.set(None);
}

impl DbError {
    /// A row that does not decode. Inside a closure of `read` or `write` it names the file.
    pub fn damaged(why: impl Into<String>) -> Self {
        Self::Damaged { file: current_file(), why: why.into() }
    }

    /// The error behind a failed system call on a file next to the database.
    pub fn from_errno(what: &str, file: &Path, errno: Errno) -> Self {
        let file = file.to_path_buf();
        match errno {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::Full { file },
            Errno::MFILE | Errno::NFILE => Self::TooManyFiles { file },
            Errno::ROFS | Errno::ACCESS | Errno::PERM => Self::ReadOnly { file },
            other => Self::Io(format!("{what} {}: {other}", file.display())),
        }
    }

    /// As [`DbError::from_errno`], for calls of the standard library.
    pub fn from_io(what: &str, file: &Path, error: &std::io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(errno) => Self::from_errno(what, file, errno),
            None => Self::Io(format!("{what} {}: {error}", file.display())),
        }
    }

    /// Another connection, of this or another process, holds a lock that is needed.
    pub(super) fn is_lock(error: &rusqlite::Error) -> bool {
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
        )
    }
}

impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> Self {
        let file = current_file();
        let Some(failure) = error.sqlite_error() else {
            return match error {
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..) => {
                    Self::Damaged { file, why: error.to_string() }
                }
                _ => Self::Io(format!("{}: {error}", file.display())),
            };
        };
        let found = match failure.code {
            ErrorCode::DiskFull => Self::Full { file },
            // The shared index of the WAL could not grow: SQLite does not say why, and space is
            // the only reason met in practice.
            _ if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => Self::Full { file },
            // Nor does it say why a file could not be written.
            _ if failure.extended_code == ffi::SQLITE_IOERR_WRITE && at_size_limit(&file) => {
                Self::Full { file }
            }
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
                Self::Busy(format!("another program holds {}", file.display()))
            }
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                Self::Damaged { file, why: error.to_string() }
            }
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Self::ReadOnly { file },
            ErrorCode::CannotOpen if no_descriptor_left() => Self::TooManyFiles { file },
            ErrorCode::CannotOpen if !writable(&file) => Self::ReadOnly { file },
            _ => Self::Io(format!("{}: {}", file.display(), cause(&file, &error, *failure))),
        };
        if !matches!(failure.code, ErrorCode::ConstraintViolation) {
            LAST.set(Some(found.clone()));
        }
        found
    }
}

/// The words of an error. `SQLite` says no more than the path of a file that it cannot open.
fn cause(file: &Path, error: &rusqlite::Error, failure: ffi::Error) -> String {
    let said = error.to_string();
    let path = file.to_string_lossy();
    if said.ends_with(&*path) { ffi::code_to_str(failure.extended_code).to_owned() } else { said }
}

/// True if the database file or its log is as long as this process may make a file, but for a page
/// and its header: `SQLite` reports this like a broken disk. A longer write is cut by the system at
/// the limit.
fn at_size_limit(file: &Path) -> bool {
    const PART: u64 = 64 << 10;
    static TOLD: Once = Once::new();
    let Some(limit) = getrlimit(Resource::Fsize).current else { return false };
    let long = |path: &Path| path.metadata().is_ok_and(|file| file.len() + PART > limit);
    let reached = long(file) || long(&wal_of(file));
    if reached {
        TOLD.call_once(|| {
            let file = file.display();
            log::warn!("{file} is as long as the limit on the size of files allows (ulimit -f)");
        });
    }
    reached
}

/// `SQLite` reports a lack of descriptors like a missing file, so we ask the system ourselves.
fn no_descriptor_left() -> bool {
    File::open("/dev/null").is_err_and(|error| {
        matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE))
    })
}

/// `SQLite` reports a missing right like a missing file, too.
fn writable(file: &Path) -> bool {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    [file, folder.unwrap_or(Path::new("."))].into_iter().all(|path| {
        !matches!(access(path, Access::WRITE_OK), Err(Errno::ROFS | Errno::ACCESS | Errno::PERM))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_path_once_and_a_cause() {
        let folder = tempfile::tempdir().unwrap();
        let path: Arc<Path> = Arc::from(folder.path().join("blob.db"));
        let _naming = Naming::file(&path);
        let cannot_open = ffi::Error::new(ffi::SQLITE_CANTOPEN);
        for said in [path.display().to_string(), format!("unable to open: {}", path.display())] {
            let failure = rusqlite::Error::SqliteFailure(cannot_open, Some(said));
            let expected = format!("{}: unable to open database file", path.display());
            assert_eq!(DbError::from(failure).to_string(), expected);
        }
        let failure = rusqlite::Error::SqliteFailure(cannot_open, Some("no memory".to_owned()));
        assert_eq!(DbError::from(failure).to_string(), format!("{}: no memory", path.display()));
    }
}
