//! Whether the files of a database still have their names: what is written to a file without a name
//! is lost with the process.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::DbError;

/// The database file, open. To be closed after all connections: closing any descriptor of a file
/// ends the locks that `SQLite` holds on it in this process.
pub(super) struct LockedFile {
    main: File,
    /// Device and inode number of the WAL, which has its name as long as a connection is open.
    wal: Option<(u64, u64)>,
}

impl LockedFile {
    /// That of a database that is open.
    pub(super) fn open(file: &Path) -> Result<Self, DbError> {
        match OpenOptions::new().read(true).open(file) {
            Ok(main) => {
                let wal = std::fs::metadata(wal_of(file)).ok();
                Ok(Self { main, wal: wal.as_ref().map(identity) })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(DbError::Io(format!("{} is gone", file.display())))
            }
            Err(error) => Err(DbError::from_io("open", file, &error)),
        }
    }

    /// An error if `file` is not the name of the open database file any more, or if the WAL has
    /// lost its own.
    pub(super) fn check_place(&self, file: &Path) -> Result<(), DbError> {
        check_place(&self.main, file)?;
        self.wal.map_or(Ok(()), |wal| check_identity(wal, &wal_of(file)))
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

/// The WAL of a database.
pub(super) fn wal_of(file: &Path) -> PathBuf {
    beside(file, "-wal")
}

/// The path of a file beside the database.
pub(super) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(suffix);
    PathBuf::from(path)
}
