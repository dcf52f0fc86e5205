//! What can go wrong below: one error type for the whole store.
//!
//! Front ends spell these as errno or FileREST codes; a rule's refusal is a
//! [`crate::core`] denial instead, never one of these.

use std::io;
use std::path::PathBuf;

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
        /// What about it.
        why: String,
    },
    /// The caller cannot wait, and it is not to be had otherwise.
    #[error("it cannot be had without waiting")]
    WouldWait,
    /// Another process serves the state folder.
    #[error("the state folder {} is in use by another process", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// Anything else the system said.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl StoreError {
    /// The error behind a system call's errno, `what` being done.
    pub fn from_errno(what: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::EXIST => Self::AlreadyExists,
            Errno::NOTDIR => Self::NotADirectory,
            Errno::ISDIR => Self::IsADirectory,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace,
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
