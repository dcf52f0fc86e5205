//! The names of refusals in JSON: one table each for files, shares and
//! the other services.

use crate::blob::rules::BlobDenial;
use crate::file::service::ShareDenial;
use crate::queue::rules::QueueDenial;
pub use crate::rules::RefusalKind;
use crate::rules::Rule;
use crate::table::rules as table;

impl RefusalKind {
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
}
