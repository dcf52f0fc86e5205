//! The NTSTATUS name of each refusal: one exhaustive table.
//!
//! Source: the recordings in `tests/oracle`.

use crate::file::rules::Denial;
use crate::file::service::{FileError, StoreError};

/// Shown for a step that has no status of its own, such as a cut connection.
pub const NO_STATUS: &str = "-";

/// Shown for a waiting request that has no answer yet.
pub const STILL_WAITING: &str = "STILL_WAITING";

/// The NTSTATUS name of an answer.
pub fn ntstatus<T>(answer: &Result<T, FileError>) -> &'static str {
    match answer {
        Ok(_) => "STATUS_SUCCESS",
        Err(FileError::Denied(denial)) => denial_status(denial),
        Err(FileError::Store(error)) => store_status(error),
    }
}

fn denial_status(denial: &Denial) -> &'static str {
    match denial {
        Denial::SharingViolation { .. }
        | Denial::Leased
        | Denial::CopyPending
        | Denial::ParentDeletePending { renaming: true, .. } => "STATUS_SHARING_VIOLATION",
        Denial::DeletePending(_) | Denial::ParentDeletePending { renaming: false, .. } => {
            "STATUS_DELETE_PENDING"
        }
        Denial::Open(_)
        | Denial::OpenBelow(_)
        | Denial::ReadOnly
        | Denial::HiddenMismatch
        | Denial::AccessDenied
        | Denial::ShareRoot
        | Denial::Lease(_) => "STATUS_ACCESS_DENIED",
        Denial::RangeLocked { .. } => "STATUS_FILE_LOCK_CONFLICT",
        Denial::LockNotGranted { .. } => "STATUS_LOCK_NOT_GRANTED",
        Denial::RangeNotLocked => "STATUS_RANGE_NOT_LOCKED",
        Denial::InvalidLockRange => "STATUS_INVALID_LOCK_RANGE",
        Denial::Cancelled => "STATUS_CANCELLED",
        Denial::TooManyWaiting => "STATUS_INSUFFICIENT_RESOURCES",
        Denial::CannotDelete => "STATUS_CANNOT_DELETE",
        Denial::HandleClosed => "STATUS_FILE_CLOSED",
        Denial::NotFound => "STATUS_OBJECT_NAME_NOT_FOUND",
        Denial::PathNotFound => "STATUS_OBJECT_PATH_NOT_FOUND",
        Denial::NameTaken => "STATUS_OBJECT_NAME_COLLISION",
        Denial::IsDirectory => "STATUS_FILE_IS_A_DIRECTORY",
        Denial::NotDirectory => "STATUS_NOT_A_DIRECTORY",
        Denial::DirectoryNotEmpty => "STATUS_DIRECTORY_NOT_EMPTY",
        // All but the first are refusals of FileREST requests, which an SMB client cannot make.
        Denial::InvalidParameter(_)
        | Denial::InvalidRange { .. }
        | Denial::BodyTooLarge { .. }
        | Denial::Metadata(_)
        | Denial::NoPendingCopy
        | Denial::CopyIdMismatch
        | Denial::CopySourceChanged
        | Denial::OtherGeneration => "STATUS_INVALID_PARAMETER",
        Denial::FileTooLarge { .. } => "STATUS_FILE_TOO_LARGE",
        Denial::ShareDeleted | Denial::ShareReplaced => "STATUS_NETWORK_NAME_DELETED",
        Denial::NotOnDirectory => "STATUS_INVALID_DEVICE_REQUEST",
        Denial::EndOfFile => "STATUS_END_OF_FILE",
        Denial::TooManyHandles => "STATUS_TOO_MANY_OPENED_FILES",
    }
}

/// The NTSTATUS name of what the disk said.
pub fn store_status(error: &StoreError) -> &'static str {
    match error {
        StoreError::NoSpace => "STATUS_DISK_FULL",
        StoreError::ReadOnly => "STATUS_MEDIA_WRITE_PROTECTED",
        StoreError::PermissionDenied => "STATUS_ACCESS_DENIED",
        StoreError::FileTooLong => "STATUS_FILE_TOO_LARGE",
        StoreError::NameTooLong => "STATUS_OBJECT_NAME_INVALID",
        _ => "STATUS_UNEXPECTED_IO_ERROR",
    }
}
