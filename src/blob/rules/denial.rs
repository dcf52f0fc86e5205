//! The refusals of the Blob service: one variant per cause.
//!
//! The message is the service's own. REST maps a cause to status and code in one table; the
//! engine, which knows the last writer, adds the request that changed the blob.

use crate::rules::Timestamp;
use crate::rules::conditions::ConditionFailure;
use crate::rules::conditions::copy::CopyRefusal;
use crate::rules::conflict::Conflict;
use crate::rules::lease::LeaseDenial;
use crate::rules::policy::PolicyFault;

/// A cause of refusal.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BlobDenial {
    #[error("The specified container does not exist.")]
    ContainerNotFound,
    #[error("The specified container already exists.")]
    ContainerAlreadyExists,
    #[error("The specified container is being deleted. Try operation later.")]
    ContainerBeingDeleted,
    #[error("The specified blob does not exist.")]
    BlobNotFound,
    #[error("The specified blob already exists.")]
    BlobAlreadyExists,
    /// The SAS permits to create blobs, not to write them.
    #[error("This request is not authorized to perform blob overwrites.")]
    UnauthorizedBlobOverwrite,
    #[error("{0}")]
    Lease(#[from] LeaseDenial),
    /// A condition on the blob or container; never [`ConditionFailure::NotFound`] or
    /// [`ConditionFailure::AlreadyExists`], which have variants of their own.
    #[error("{}", condition_text(*.0))]
    Condition(ConditionFailure),
    /// A condition on the source or destination of a copy.
    #[error("{}", copy_text(*.0))]
    CopyCondition(CopyRefusal),
    /// The source of an operation that reads a URL refuses to be read.
    #[error("Could not verify the copy source within the specified time.")]
    Source(Box<Self>),
    #[error("The append position condition specified was not met.")]
    AppendPositionConditionNotMet,
    #[error("The max blob size condition specified was not met.")]
    MaxBlobSizeConditionNotMet,
    #[error("The sequence number condition specified was not met.")]
    SequenceNumberConditionNotMet,
    #[error(
        "The sequence number increment cannot be performed because it would result in overflow of \
         the sequence number."
    )]
    SequenceNumberIncrementTooLarge,
    #[error("The blob type is invalid for this operation.")]
    InvalidBlobType,
    #[error("There is currently a pending copy operation.")]
    PendingCopyOperation,
    #[error("There is currently no pending copy operation.")]
    NoPendingCopyOperation,
    #[error("The specified copy ID did not match the copy ID for the pending copy operation.")]
    CopyIdMismatch,
    #[error("This operation is not permitted as the blob is immutable due to a policy.")]
    BlobImmutableDueToPolicy(Timestamp),
    #[error(
        "This operation is not permitted as the blob is immutable due to one or more legal holds."
    )]
    BlobImmutableDueToLegalHold,
    /// Sent as a bad header value.
    #[error("The immutability policy must end in the future.")]
    ImmutabilityPolicyInThePast,
    #[error("This operation is not permitted on an archived blob.")]
    BlobArchived,
    #[error("This operation is not permitted because the blob is being rehydrated.")]
    BlobBeingRehydrated,
    #[error(
        "The specified blob is sealed and its contents can't be modified unless the blob is \
         re-created after a delete."
    )]
    BlobIsSealed,
    #[error("This operation is not permitted while the blob has snapshots.")]
    SnapshotsPresent,
    /// `x-ms-delete-snapshots` for a snapshot or version. Sent as a bad query parameter.
    #[error("Value for one of the query parameters specified in the request URI is invalid.")]
    DeleteSnapshotsOfSnapshot,
    #[error("The operation is not allowed on the current version of the blob.")]
    OperationNotAllowedOnRootBlob,
    #[error("The specified block list is invalid.")]
    InvalidBlockList,
    #[error("The specified blob or block content is invalid.")]
    InvalidBlobOrBlock,
    #[error("The block list may not contain more than 50,000 blocks.")]
    BlockListTooLong,
    #[error("The block count of the blob exceeds the maximum limit.")]
    BlockCountExceedsLimit,
    /// A download that begins at or past the end of a blob of this length.
    #[error("The range specified is invalid for the current size of the resource.")]
    InvalidRange(u64),
    #[error("The page range specified is invalid.")]
    InvalidPageRange,
    #[error("The previous snapshot is not found.")]
    PreviousSnapshotNotFound,
    #[error(
        "The prevsnapshot query parameter value cannot be newer than snapshot query parameter \
         value."
    )]
    PreviousSnapshotCannotBeNewer,
    #[error("The blob has been recreated since the previous snapshot was taken.")]
    BlobOverwritten,
    #[error(
        "The blob is encrypted with customer specified encryption, but it was not provided in the \
         request."
    )]
    BlobUsesCustomerSpecifiedEncryption,
    #[error(
        "The given customer specified encryption does not match the encryption used to encrypt the \
         blob."
    )]
    BlobCustomerSpecifiedEncryptionMismatch,
    #[error(
        "The blob is not encrypted with customer specified encryption, but it was provided in the \
         request."
    )]
    BlobDoesNotUseCustomerSpecifiedEncryption,
    /// An expression that compares no tag. Sent as a bad query parameter.
    #[error("The expression must compare at least one tag.")]
    InvalidTagQuery,
    /// Sent as a bad document.
    #[error("XML specified is not syntactically valid. [latchfs: {0}]")]
    Policy(#[from] PolicyFault),
    #[error("The request is forbidden by the container encryption policy.")]
    RequestForbiddenByContainerEncryptionPolicy,
}

impl BlobDenial {
    /// The conflict with another client that the refusal is about, if any. A read that finds
    /// nothing new (304) is no conflict.
    pub const fn conflict(&self) -> Option<Conflict> {
        match self {
            Self::Lease(_) => Some(Conflict::Lease),
            Self::PendingCopyOperation => Some(Conflict::CopyPending),
            Self::Condition(ConditionFailure::NotMet(_))
            | Self::CopyCondition(_)
            | Self::BlobAlreadyExists
            | Self::AppendPositionConditionNotMet
            | Self::MaxBlobSizeConditionNotMet
            | Self::SequenceNumberConditionNotMet => Some(Conflict::Condition),
            _ => None,
        }
    }

    /// Whether Get Blob of the source of a copy is refused like this, so that an operation that
    /// reads a URL answers that it cannot verify its source.
    pub const fn refuses_reading(&self) -> bool {
        matches!(
            self,
            Self::BlobNotFound
                | Self::ContainerNotFound
                | Self::InvalidRange(_)
                | Self::BlobUsesCustomerSpecifiedEncryption
                | Self::BlobCustomerSpecifiedEncryptionMismatch
                | Self::BlobDoesNotUseCustomerSpecifiedEncryption
        )
    }
}

const fn condition_text(failure: ConditionFailure) -> &'static str {
    match failure {
        ConditionFailure::TooMany => "Multiple condition headers are not supported.",
        ConditionFailure::Unsatisfiable => {
            "The request includes an unsatisfiable condition for this operation."
        }
        ConditionFailure::NotFound => "The specified resource does not exist.",
        ConditionFailure::NotModified(_) | ConditionFailure::NotMet(_) => {
            "The condition specified using HTTP conditional header(s) is not met."
        }
        ConditionFailure::AlreadyExists => "The specified resource already exists.",
    }
}

const fn copy_text(refusal: CopyRefusal) -> &'static str {
    match refusal {
        CopyRefusal::ConditionNotMet => {
            "The condition specified using HTTP conditional header(s) is not met."
        }
        CopyRefusal::SourceConditionNotMet => {
            "The source condition specified using HTTP conditional header(s) is not met."
        }
        CopyRefusal::TargetConditionNotMet => {
            "The target condition specified using HTTP conditional header(s) is not met."
        }
        CopyRefusal::SourceNotVerified | CopyRefusal::SourceNotModified => {
            "Could not verify the copy source within the specified time."
        }
    }
}
