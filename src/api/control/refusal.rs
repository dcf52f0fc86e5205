//! The names of refusals on the control socket and in JSON: one table each for files, shares and
//! the other services.

use serde::{Deserialize, Serialize};

use crate::blob::rules::BlobDenial;
use crate::file::rules::{Denial, Rule};
use crate::file::service::ShareDenial;
use crate::queue::rules::QueueDenial;
use crate::rules::conflict::Conflict;
use crate::table::rules as table;

/// The rule that refused. A conflict has the name that the metric `latchfs_conflicts_total` has
/// for it ([`Rule::name`]); scripts tell by it whether to try again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
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
    Denied,
    /// What another client holds: a later request may be granted.
    #[serde(untagged)]
    Held(Rule),
}

impl From<Rule> for RefusalKind {
    fn from(rule: Rule) -> Self {
        Self::Held(rule)
    }
}

impl From<Conflict> for RefusalKind {
    fn from(conflict: Conflict) -> Self {
        match conflict {
            Conflict::Condition => Self::Condition,
            Conflict::Lease => Rule::Lease.into(),
            Conflict::CopyPending => Rule::CopyPending.into(),
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
            ShareDenial::ShareBeingDeleted => Rule::DeletePending.into(),
            ShareDenial::DeleteShareWhenSnapshotLeased
            | ShareDenial::ShareSnapshotInProgress
            | ShareDenial::Lease(_) => Rule::Lease.into(),
            ShareDenial::InvalidResourceName(_)
            | ShareDenial::Metadata(_)
            | ShareDenial::OutOfRangeQuota(_)
            | ShareDenial::UnsupportedProtocol(_)
            | ShareDenial::UnknownAccessTier(_)
            | ShareDenial::Policy(_)
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
            BlobDenial::Lease(_) => Rule::Lease.into(),
            BlobDenial::PendingCopyOperation => Rule::CopyPending.into(),
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
    pub fn of_table(denial: &table::TableDenial) -> Self {
        match denial {
            table::TableDenial::TableNotFound | table::TableDenial::ResourceNotFound => {
                Self::NotFound
            }
            _ => Self::Invalid,
        }
    }

    /// True if another client holds the object: a later request may be granted.
    pub fn is_busy(self) -> bool {
        matches!(self, Self::Held(_))
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
    /// The disk is full.
    Full,
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
            assert_eq!(serde_json::from_value::<RefusalKind>(kind).unwrap(), rule.into());
        }
        for conflict in Conflict::ALL {
            let kind = serde_json::to_value(RefusalKind::from(conflict)).unwrap();
            assert_eq!(kind, conflict.name());
        }
    }
}
