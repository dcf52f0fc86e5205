//! The errno of each refusal: one exhaustive table.

use fuser::Errno;

use crate::file::rules::Denial;
use crate::file::service::{FileError, StoreError};

/// The errno of an operation's error.
pub fn errno(error: &FileError) -> Errno {
    match error {
        FileError::Denied(denial) => of_denial(denial),
        FileError::Store(error) => of_store(error),
    }
}

/// The errnos that refusals have and faults can name.
const NAMES: [(&str, i32); 21] = [
    ("EACCES", libc::EACCES),
    ("EAGAIN", libc::EAGAIN),
    ("EBUSY", libc::EBUSY),
    ("EDQUOT", libc::EDQUOT),
    ("EEXIST", libc::EEXIST),
    ("EFBIG", libc::EFBIG),
    ("EINTR", libc::EINTR),
    ("EINVAL", libc::EINVAL),
    ("EIO", libc::EIO),
    ("EISDIR", libc::EISDIR),
    ("EMFILE", libc::EMFILE),
    ("ENFILE", libc::ENFILE),
    ("ENOENT", libc::ENOENT),
    ("ENOLCK", libc::ENOLCK),
    ("ENOSPC", libc::ENOSPC),
    ("ENOTDIR", libc::ENOTDIR),
    ("ENOTEMPTY", libc::ENOTEMPTY),
    ("EPERM", libc::EPERM),
    ("EROFS", libc::EROFS),
    ("ESTALE", libc::ESTALE),
    ("ETIMEDOUT", libc::ETIMEDOUT),
];

/// The name of the errno of a refusal.
pub fn name_of(denial: &Denial) -> &'static str {
    let code = of_denial(denial).code();
    NAMES.iter().find(|(_, number)| *number == code).expect("each refusal's errno has a name").0
}

/// The errno of that name.
pub fn named(name: &str) -> Option<Errno> {
    let (_, number) = NAMES.iter().find(|(known, _)| *known == name)?;
    Some(Errno::from_i32(*number))
}

/// The errno of a system call that latchfs made.
pub fn of_system(errno: rustix::io::Errno) -> Errno {
    Errno::from_i32(errno.raw_os_error())
}

fn of_denial(denial: &Denial) -> Errno {
    match denial {
        Denial::SharingViolation { .. }
        | Denial::ParentShared { .. }
        | Denial::Open(_)
        | Denial::Leased
        | Denial::OpenBelow(_)
        | Denial::DeletePending(_)
        | Denial::ParentDeletePending { .. }
        | Denial::CopyPending
        | Denial::ShareRoot
        | Denial::Lease(_) => Errno::EBUSY,
        // The kernel looks its path up again, and finds what has taken the share's place.
        Denial::ShareDeleted | Denial::ShareReplaced => Errno::ESTALE,
        Denial::LockNotGranted { .. } => Errno::EAGAIN,
        Denial::RangeLocked { .. }
        | Denial::ReadOnly
        | Denial::CannotDelete
        | Denial::HiddenMismatch
        | Denial::AccessDenied => Errno::EACCES,
        Denial::RangeNotLocked
        | Denial::InvalidLockRange
        | Denial::InvalidParameter(_)
        | Denial::EndOfFile
        // The rest are REST's requests: no call of the mount asks for them.
        | Denial::InvalidRange { .. }
        | Denial::Metadata(_)
        | Denial::NoPendingCopy
        | Denial::CopyIdMismatch
        | Denial::CopySourceChanged
        | Denial::OtherGeneration => Errno::EINVAL,
        Denial::BodyTooLarge { .. } | Denial::FileTooLarge { .. } => Errno::EFBIG,
        Denial::Cancelled => Errno::EINTR,
        Denial::TooManyWaiting => Errno::ENOLCK,
        // A live descriptor whose handle is gone was force-closed.
        Denial::HandleClosed => Errno::EIO,
        Denial::NotFound | Denial::PathNotFound => Errno::ENOENT,
        Denial::NameTaken => Errno::EEXIST,
        Denial::IsDirectory | Denial::NotOnDirectory => Errno::EISDIR,
        Denial::NotDirectory => Errno::ENOTDIR,
        Denial::DirectoryNotEmpty => Errno::ENOTEMPTY,
        Denial::TooManyHandles => Errno::ENFILE,
    }
}

fn of_store(error: &StoreError) -> Errno {
    match error {
        StoreError::NotFound | StoreError::ParentNotFound => Errno::ENOENT,
        StoreError::AlreadyExists => Errno::EEXIST,
        StoreError::NotADirectory => Errno::ENOTDIR,
        StoreError::IsADirectory => Errno::EISDIR,
        StoreError::NotEmpty => Errno::ENOTEMPTY,
        StoreError::Replaced => Errno::ESTALE,
        StoreError::NoSpace => Errno::ENOSPC,
        StoreError::ReadOnly => Errno::EROFS,
        StoreError::PermissionDenied => Errno::EACCES,
        StoreError::FileTooLong => Errno::EFBIG,
        StoreError::NameTooLong => Errno::ENAMETOOLONG,
        StoreError::InUse { .. } => Errno::EBUSY,
        StoreError::Damaged { .. } => Errno::EIO,
        StoreError::Io { source, .. } => {
            Errno::from_i32(source.raw_os_error().unwrap_or(libc::EIO))
        }
    }
}
