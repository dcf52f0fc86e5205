//! The errors of the store: one type for all of it.
//!
//! Front ends translate them into errno and REST codes. The refusal of a rule is a denial of
//! [`crate::rules`], not a store error.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Why the store could not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing of that name.
    #[error("no such file or directory")]
    NotFound,
    /// A directory on the way is missing, or is no directory.
    #[error("the parent directory does not exist")]
    ParentNotFound,
    /// The name is taken.
    #[error("the name is taken")]
    AlreadyExists,
    /// A directory was needed.
    #[error("not a directory")]
    NotADirectory,
    /// A file was needed.
    #[error("is a directory")]
    IsADirectory,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// Another file stands under the name now.
    #[error("the file was replaced meanwhile")]
    Replaced,
    /// The disk or the quota of its owner is full.
    #[error("no space left for the share")]
    NoSpace,
    /// Longer than the file system, or the limit of this process (`ulimit -f`), allows.
    #[error("the file would be longer than a limit allows")]
    FileTooLong,
    /// The backing file system is mounted read-only.
    #[error("the backing directory is read-only")]
    ReadOnly,
    /// This process may not do that in the backing directory.
    #[error("permission denied in the backing directory")]
    PermissionDenied,
    /// A name or path longer than the backing file system takes.
    #[error("the name is too long for the backing directory")]
    NameTooLong,
    /// A state file or metadata record that cannot be understood.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// Which record or file.
        what: String,
        /// Why it cannot be understood.
        why: String,
    },
    /// Another process serves the state folder.
    #[error("the state folder {} is in use by another process", path.display())]
    InUse { path: PathBuf },
    /// Anything else the system said.
    #[error("{what}: {source}")]
    Io {
        /// The step that failed.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl StoreError {
    /// A file that should be there is not.
    pub(crate) fn missing(path: &Path) -> Self {
        Self::damaged(path, "it is missing")
    }

    /// A file that cannot be understood.
    pub(crate) fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged { what: path.display().to_string(), why: why.into() }
    }

    /// The error behind a system call's errno, `what` being done.
    pub fn from_errno(what: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::EXIST => Self::AlreadyExists,
            Errno::NOTDIR => Self::NotADirectory,
            Errno::ISDIR => Self::IsADirectory,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace,
            Errno::FBIG => Self::FileTooLong,
            Errno::ROFS => Self::ReadOnly,
            Errno::ACCESS | Errno::PERM => Self::PermissionDenied,
            Errno::NAMETOOLONG => Self::NameTooLong,
            other => Self::Io { what, source: other.into() },
        }
    }
}

/// Shorthand for `.map_err` on a system call.
pub(crate) fn doing(what: &'static str) -> impl Fn(Errno) -> StoreError {
    move |errno| StoreError::from_errno(what, errno)
}

/// Shorthand for `.map_err` on a call of the standard library.
pub(crate) fn failing(what: &'static str) -> impl Fn(io::Error) -> StoreError {
    move |error| match Errno::from_io_error(&error) {
        Some(errno) => StoreError::from_errno(what, errno),
        None => StoreError::Io { what, source: error },
    }
}
