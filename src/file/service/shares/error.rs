//! The errors of operations on a share as a whole.
//!
//! A refusal is an answer; a store error means that no answer can be given. Each refusal is named
//! like its documented code; statuses and spellings are decided by REST.

use crate::disk::{DataRootError, StoreError};
use crate::file::store::root::RootError;
use crate::file::store::share::{SNAPSHOTS_MAX, SnapshotError};
use crate::rules::lease::LeaseDenial;
use crate::rules::policy::PolicyFault;
use crate::rules::{MetadataError, NameError};

use super::permission::PERMISSION_BYTES_MAX;
use super::properties::QUOTA_GIB_MAX;

/// Why a share-level operation was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ShareDenial {
    /// No share of that name, or no deleted one of that version.
    #[error("The specified share does not exist.")]
    ShareNotFound,
    /// The name is taken, by a share that is being made or restored too.
    #[error("The specified share already exists.")]
    ShareAlreadyExists,
    /// The share is on its way out.
    #[error("The specified share is being deleted. Try operation later.")]
    ShareBeingDeleted,
    /// Delete Share without a word about snapshots.
    #[error("The share has snapshots and the operation requires no snapshots.")]
    ShareHasSnapshots,
    /// Delete Share with snapshots of which one is leased.
    #[error("A snapshot of the share is leased; ask to delete leased ones too, or end the lease.")]
    DeleteShareWhenSnapshotLeased,
    /// No snapshot of that stamp.
    #[error("The specified snapshot does not exist.")]
    ShareSnapshotNotFound,
    /// No snapshot of that stamp, to tell the difference to.
    #[error("The previous snapshot does not exist.")]
    PreviousSnapshotNotFound,
    /// The snapshot that is compared with another is not the older one.
    #[error("The previous snapshot is not older than the snapshot that is asked about.")]
    PreviousSnapshotNotOlder,
    /// As many as a share may have.
    #[error("The share has {SNAPSHOTS_MAX} snapshots, the most it may have; delete one first.")]
    ShareSnapshotCountExceeded,
    /// Another snapshot of the share is being made.
    #[error("Another snapshot of the share is in progress.")]
    ShareSnapshotInProgress,
    /// A change was asked of a snapshot.
    #[error("The operation is not supported on a share snapshot: it is read-only.")]
    ShareSnapshotOperationNotSupported,
    /// The caller of Create Snapshot gave up.
    #[error("The snapshot was cancelled.")]
    SnapshotCancelled,
    /// No share can have that name.
    #[error("{}", .0.message())]
    Name(#[from] NameError),
    #[error(transparent)]
    Lease(#[from] LeaseDenial),
    /// `EmptyMetadataKey`, `InvalidMetadata` or `MetadataTooLarge`.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A quota outside its bounds.
    #[error("The quota must be 1 to {QUOTA_GIB_MAX} GiB, not {0}.")]
    OutOfRangeQuota(u64),
    /// A protocol that no share has.
    #[error("'{0}' is not a protocol of shares: SMB or NFS.")]
    UnsupportedProtocol(String),
    /// No access tier of that name.
    #[error("'{0}' is not an access tier: use TransactionOptimized, Hot, Cool or Premium.")]
    UnknownAccessTier(String),
    /// Stored access policies that are not allowed.
    #[error(transparent)]
    Policy(#[from] PolicyFault),
    #[error("The file permission is invalid: {0}.")]
    FileInvalidPermission(&'static str),
    /// A security descriptor beyond the limit.
    #[error("The file permission has more than {PERMISSION_BYTES_MAX} bytes.")]
    FilePermissionTooLarge,
    #[error("The file permission key is not known to this share.")]
    FileInvalidPermissionKey,
    /// The permission is kept in the other format.
    #[error("The permission was given in another format; converting is not supported here.")]
    PermissionFormatUnsupported,
    /// A listing marker that no page ended with.
    #[error("The continuation token is invalid.")]
    InvalidContinuationToken,
    /// Shares come and go in a data root only.
    #[error("This server serves one directory as it is: its share cannot be made or deleted.")]
    OneDirectoryOnly,
}

/// Why a share-level operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum FileServiceError {
    #[error(transparent)]
    Denied(#[from] ShareDenial),
    /// The disk could not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The data root could not.
    #[error(transparent)]
    Root(RootError),
    /// The snapshot could not be taken.
    #[error(transparent)]
    Snapshot(SnapshotError),
    /// A file of the share stood in the way.
    #[error("{what}: {source}")]
    Share {
        /// The step that failed, and its share.
        what: String,
        source: super::super::FileError,
    },
}

/// The result of a share-level operation.
pub type FileServiceResult<T> = Result<T, FileServiceError>;

impl FileServiceError {
    /// The refusal, if it is one.
    pub fn denial(&self) -> Option<&ShareDenial> {
        match self {
            Self::Denied(denial) => Some(denial),
            _ => None,
        }
    }
}

impl From<LeaseDenial> for FileServiceError {
    fn from(denial: LeaseDenial) -> Self {
        Self::Denied(denial.into())
    }
}

impl From<MetadataError> for FileServiceError {
    fn from(error: MetadataError) -> Self {
        Self::Denied(error.into())
    }
}

/// Reads the error of the disk out of an answer.
impl FileServiceError {
    /// The error of the disk, if this is one.
    pub fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error)
            | Self::Root(RootError::Data(DataRootError::Store { source: error, .. }))
            | Self::Snapshot(
                SnapshotError::Store(error) | SnapshotError::Entry { source: error, .. },
            ) => Some(error),
            Self::Denied(_) | Self::Share { .. } | Self::Root(_) | Self::Snapshot(_) => None,
        }
    }

    /// The file that cannot be understood, and why, if that is the cause.
    pub(super) fn damage(&self) -> Option<String> {
        let found = match self {
            Self::Share { source: super::super::FileError::Store(error), .. } => Some(error),
            other => other.store_error(),
        };
        found.filter(|error| matches!(error, StoreError::Damaged { .. })).map(ToString::to_string)
    }
}

impl From<RootError> for FileServiceError {
    fn from(error: RootError) -> Self {
        Self::Denied(match error {
            RootError::Data(DataRootError::Store { source: StoreError::NotFound, .. })
            | RootError::Version(_) => ShareDenial::ShareNotFound,
            RootError::Data(DataRootError::Store { source: StoreError::AlreadyExists, .. }) => {
                ShareDenial::ShareAlreadyExists
            }
            other => return Self::Root(other),
        })
    }
}

impl From<SnapshotError> for FileServiceError {
    fn from(error: SnapshotError) -> Self {
        Self::Denied(match error {
            SnapshotError::Cancelled => ShareDenial::SnapshotCancelled,
            SnapshotError::TooMany => ShareDenial::ShareSnapshotCountExceeded,
            other => return Self::Snapshot(other),
        })
    }
}
