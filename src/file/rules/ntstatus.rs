//! The NTSTATUS name of each refusal: one exhaustive table.
//!
//! Source: the recordings in `tests/oracle`.

use super::Denial;

/// The NTSTATUS name of a refusal.
pub fn name(denial: &Denial) -> &'static str {
    match denial {
        Denial::SharingViolation { .. }
        | Denial::ParentShared { .. }
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
