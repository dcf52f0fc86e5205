//! The names of refusals on the control socket and in JSON: one table each for files, shares and
//! the other services.

use serde::{Deserialize, Serialize};

use crate::core::blob::BlobDenial;
use crate::core::conflict::Conflict;
use crate::core::queue::QueueDenial;
use crate::core::smb::{Denial, Rule};
use crate::core::table;
use crate::engine::file::ShareDenial;

/// The rule that refused. A conflict has the name that the metric `latchfs_conflicts` has for it
/// ([`Rule::name`]); scripts tell by it whether to try again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// Access and share modes exclude each other.
    SharingViolation,
    /// The file is open, and the operation allows no open.
    FileOpen,
    /// Something below the directory is open.
    OpenBelow,
    /// The name is marked for deletion.
    DeletePending,
    /// The directory of the name is marked for deletion.
    ParentDeletePending,
    /// Bytes to be read or written are locked.
    RangeLocked,
    /// Bytes to be locked are locked.
    LockNotGranted,
    /// The file or share is leased.
    Lease,
    /// A copy to the file is under way.
    CopyPending,
    /// The object is not as the condition of the request demands.
    Condition,
    /// The pop receipt is not that of the message.
    Receipt,
    /// Nothing has that name.
    NotFound,
    /// The name is taken.
    Exists,
    /// The request makes no sense.
    Invalid,
    /// Any other rule.
    Denied,
}

impl From<Rule> for RefusalKind {
    fn from(rule: Rule) -> Self {
        match rule {
            Rule::SharingViolation => Self::SharingViolation,
            Rule::FileOpen => Self::FileOpen,
            Rule::OpenBelow => Self::OpenBelow,
            Rule::DeletePending => Self::DeletePending,
            Rule::ParentDeletePending => Self::ParentDeletePending,
            Rule::RangeLocked => Self::RangeLocked,
            Rule::LockNotGranted => Self::LockNotGranted,
            Rule::Lease => Self::Lease,
            Rule::CopyPending => Self::CopyPending,
        }
    }
}

impl From<Conflict> for RefusalKind {
    fn from(conflict: Conflict) -> Self {
        match conflict {
            Conflict::Condition => Self::Condition,
            Conflict::Lease => Self::Lease,
            Conflict::CopyPending => Self::CopyPending,
            Conflict::Receipt => Self::Receipt,
        }
    }
}

impl RefusalKind {
    /// The kind of a refusal.
    pub fn of(denial: &Denial) -> Self {
        if let Some(rule) = denial.rule() {
            return rule.into();
        }
        match denial {
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
            _ => Self::Denied,
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
            | ShareDenial::Lease(_) => Self::Lease,
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

    /// The kind of a refusal by the Blob service.
    pub fn of_blob(denial: &BlobDenial) -> Self {
        match denial {
            BlobDenial::BlobNotFound | BlobDenial::ContainerNotFound => Self::NotFound,
            BlobDenial::Lease(_) => Self::Lease,
            BlobDenial::PendingCopyOperation => Self::CopyPending,
            _ => Self::Denied,
        }
    }

    /// The kind of a refusal by the Queue service.
    pub fn of_queue(denial: &QueueDenial) -> Self {
        match denial {
            QueueDenial::QueueNotFound(_) | QueueDenial::MessageNotFound(_) => Self::NotFound,
            _ => Self::Invalid,
        }
    }

    /// The kind of a refusal by the Table service.
    pub fn of_table(denial: &table::Denial) -> Self {
        match denial {
            table::Denial::TableNotFound | table::Denial::ResourceNotFound => Self::NotFound,
            _ => Self::Invalid,
        }
    }

    /// True if another client holds the object: a later request may be granted.
    pub fn is_busy(self) -> bool {
        !matches!(
            self,
            Self::Condition
                | Self::Receipt
                | Self::NotFound
                | Self::Exists
                | Self::Invalid
                | Self::Denied
        )
    }
}

/// Why a request was not carried out although no rule refused it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The request makes no sense.
    BadRequest,
    /// The object that the request names does not exist.
    NotFound,
    /// A bound of the server is reached.
    Busy,
    /// The system refused, or the server has an error.
    #[default]
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_has_one_name_in_events_and_in_metrics() {
        for rule in Rule::ALL {
            let kind = serde_json::to_value(RefusalKind::from(rule)).unwrap();
            assert_eq!(kind, rule.name());
        }
        for conflict in Conflict::ALL {
            let kind = serde_json::to_value(RefusalKind::from(conflict)).unwrap();
            assert_eq!(kind, conflict.name());
        }
    }
}
