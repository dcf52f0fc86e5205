//! What a refusal is called on the control socket: an exhaustive table each for files and shares.

use serde::{Deserialize, Serialize};

use crate::core::Denial;
use crate::engine::ShareDenial;

/// Which kind of rule refused. Scripts tell by it whether to try again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// Access and share modes exclude each other.
    SharingViolation,
    /// The name, or its directory, is marked for deletion.
    DeletePending,
    /// Somebody has it open, or something below it.
    Open,
    /// A lease, or a copy under way, keeps it.
    Leased,
    /// A byte-range lock.
    Locked,
    /// Nothing of that name.
    NotFound,
    /// The name is taken.
    Exists,
    /// The request cannot be meant so.
    Invalid,
    /// Any other rule.
    Denied,
}

impl RefusalKind {
    /// The kind of a refusal.
    pub fn of(denial: &Denial) -> Self {
        match denial {
            Denial::SharingViolation { .. } => Self::SharingViolation,
            Denial::DeletePending(_) | Denial::ParentDeletePending { .. } => Self::DeletePending,
            Denial::Open(_) | Denial::OpenBelow(_) => Self::Open,
            Denial::Leased | Denial::Lease(_) | Denial::CopyPending => Self::Leased,
            Denial::RangeLocked { .. } | Denial::LockNotGranted { .. } => Self::Locked,
            Denial::NotFound | Denial::PathNotFound | Denial::ShareDeleted => Self::NotFound,
            Denial::NameTaken => Self::Exists,
            Denial::InvalidParameter(_)
            | Denial::InvalidLockRange
            | Denial::IsDirectory
            | Denial::NotDirectory
            | Denial::NotOnDirectory
            | Denial::InvalidRange { .. }
            | Denial::BodyTooLarge { .. }
            | Denial::FileTooLarge { .. }
            | Denial::Metadata(_) => Self::Invalid,
            Denial::RangeNotLocked
            | Denial::Cancelled
            | Denial::TooManyWaiting
            | Denial::ReadOnly
            | Denial::CannotDelete
            | Denial::HiddenMismatch
            | Denial::AccessDenied
            | Denial::HandleClosed
            | Denial::DirectoryNotEmpty
            | Denial::EndOfFile
            | Denial::ShareRoot
            | Denial::NoPendingCopy
            | Denial::CopyIdMismatch
            | Denial::CopySourceChanged
            | Denial::OtherGeneration
            | Denial::TooManyHandles => Self::Denied,
        }
    }

    /// The kind of a refusal that concerns a share as a whole.
    pub fn of_share(denial: &ShareDenial) -> Self {
        match denial {
            ShareDenial::ShareNotFound
            | ShareDenial::ShareSnapshotNotFound
            | ShareDenial::PreviousSnapshotNotFound => Self::NotFound,
            ShareDenial::ShareAlreadyExists => Self::Exists,
            ShareDenial::ShareBeingDeleted => Self::DeletePending,
            ShareDenial::DeleteShareWhenSnapshotLeased
            | ShareDenial::ShareSnapshotInProgress
            | ShareDenial::Lease(_) => Self::Leased,
            ShareDenial::InvalidResourceName(_)
            | ShareDenial::Metadata(_)
            | ShareDenial::OutOfRangeQuota(_)
            | ShareDenial::UnsupportedProtocol(_)
            | ShareDenial::UnknownAccessTier(_)
            | ShareDenial::TooManyPolicies(_)
            | ShareDenial::InvalidPolicy(_)
            | ShareDenial::FileInvalidPermission(_)
            | ShareDenial::FilePermissionTooLarge
            | ShareDenial::FileInvalidPermissionKey
            | ShareDenial::PermissionFormatUnsupported
            | ShareDenial::PreviousSnapshotNotOlder
            | ShareDenial::InvalidContinuationToken => Self::Invalid,
            ShareDenial::ShareHasSnapshots
            | ShareDenial::ShareSnapshotCountExceeded
            | ShareDenial::ShareSnapshotOperationNotSupported
            | ShareDenial::SnapshotCancelled
            | ShareDenial::OneDirectoryOnly => Self::Denied,
        }
    }

    /// True if somebody else holds what was asked for: later it may be granted.
    pub fn is_busy(self) -> bool {
        matches!(
            self,
            Self::SharingViolation | Self::DeletePending | Self::Open | Self::Leased | Self::Locked
        )
    }
}
