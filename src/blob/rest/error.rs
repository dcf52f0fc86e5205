//! The status and code of each refusal of the Blob service: one table.
//!
//! The message is the service's own; who changed the blob, or has to do with its lease, follows in
//! brackets.

use hyper::StatusCode;

use super::BlobCall;
use crate::blob::rules::BlobDenial;
use crate::blob::service::{BlobError, BlobResult};
use crate::http::frame::refusal::{Refusal, lease_code};
use crate::rules::conditions::ConditionFailure;
use crate::rules::conditions::copy::CopyRefusal;
use crate::rules::lease::LeaseDenial;
use crate::rules::{Timestamp, time};

const BAD: StatusCode = StatusCode::BAD_REQUEST;
const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;
const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;
const CONFLICT: StatusCode = StatusCode::CONFLICT;
const FAILED: StatusCode = StatusCode::PRECONDITION_FAILED;
const NOT_MODIFIED: StatusCode = StatusCode::NOT_MODIFIED;
const RANGE: StatusCode = StatusCode::RANGE_NOT_SATISFIABLE;

impl BlobCall<'_> {
    /// The answer of the engine, or the refusal of the request.
    pub(super) fn told<T>(&self, result: BlobResult<T>) -> Result<T, Refusal> {
        result.map_err(|error| refusal(error, self.0.context.now))
    }
}

/// The refusal of the request that was to open the service. No rule was asked.
pub fn refusal_of_opening(error: BlobError) -> Refusal {
    refusal(error, Timestamp(0))
}

fn refusal(error: BlobError, now: Timestamp) -> Refusal {
    let (denial, writer, unchanged) = match error {
        BlobError::Denied { denial, writer, unchanged } => (denial, writer, unchanged),
        BlobError::Store(error) => return Refusal::from(&error),
    };
    let (status, code) = code(&denial);
    let mut message = denial.to_string();
    if let Some(writer) = writer {
        let told = match &denial {
            BlobDenial::Lease(LeaseDenial::LeaseLost(_)) => {
                writer.told_as("the lease was last touched", now)
            }
            BlobDenial::Lease(_) => writer.told_of_lease(now),
            _ => writer.told_at(now),
        };
        message = format!("{message} [latchfs: {told}]");
    }
    if let BlobDenial::BlobImmutableDueToPolicy(until) = denial {
        message = format!("{message} [latchfs: until {}]", time::rfc1123(until));
    }
    let mut refusal = Refusal::new(status, code, message).by_conflict(denial.conflict());
    if let Some((etag, modified)) = unchanged {
        refusal = refusal
            .with("ETag", format!("\"{etag}\""))
            .with("LastModified", time::rfc1123(modified));
    }
    if let BlobDenial::Source(source) = &denial {
        let (code, message) = (self::code(source).1, source.to_string());
        let why = format!("{} [latchfs: {}]", refusal.message, message.trim_end_matches('.'));
        refusal.message = why.into();
        refusal = refusal.of_source(status, Some(code), Some(&message));
    }
    if let BlobDenial::InvalidRange(length) = denial {
        refusal.size = Some(length);
    }
    refusal
}

fn code(denial: &BlobDenial) -> (StatusCode, &'static str) {
    use BlobDenial as D;
    match denial {
        D::ContainerNotFound => (NOT_FOUND, "ContainerNotFound"),
        D::ContainerAlreadyExists => (CONFLICT, "ContainerAlreadyExists"),
        D::ContainerBeingDeleted => (CONFLICT, "ContainerBeingDeleted"),
        D::BlobNotFound => (NOT_FOUND, "BlobNotFound"),
        D::UnauthorizedBlobOverwrite => (FORBIDDEN, "UnauthorizedBlobOverwrite"),
        D::BlobAlreadyExists => (CONFLICT, "BlobAlreadyExists"),
        D::Lease(denial) => lease_code(*denial),
        D::Condition(failure) => condition_code(*failure),
        D::CopyCondition(refusal) => copy_code(*refusal),
        D::Source(source) => (code(source).0, "CannotVerifyCopySource"),
        D::AppendPositionConditionNotMet => (FAILED, "AppendPositionConditionNotMet"),
        D::MaxBlobSizeConditionNotMet => (FAILED, "MaxBlobSizeConditionNotMet"),
        D::SequenceNumberConditionNotMet => (FAILED, "SequenceNumberConditionNotMet"),
        D::SequenceNumberIncrementTooLarge => (CONFLICT, "SequenceNumberIncrementTooLarge"),
        D::InvalidBlobType => (CONFLICT, "InvalidBlobType"),
        D::PendingCopyOperation => (CONFLICT, "PendingCopyOperation"),
        D::NoPendingCopyOperation => (CONFLICT, "NoPendingCopyOperation"),
        D::CopyIdMismatch => (CONFLICT, "CopyIdMismatch"),
        D::BlobImmutableDueToPolicy(_) => (CONFLICT, "BlobImmutableDueToPolicy"),
        D::BlobImmutableDueToLegalHold => (CONFLICT, "BlobImmutableDueToLegalHold"),
        D::ImmutabilityPolicyInThePast => (BAD, "InvalidHeaderValue"),
        D::BlobArchived => (CONFLICT, "BlobArchived"),
        D::BlobBeingRehydrated => (CONFLICT, "BlobBeingRehydrated"),
        D::BlobIsSealed => (CONFLICT, "BlobIsSealed"),
        D::SnapshotsPresent => (CONFLICT, "SnapshotsPresent"),
        D::DeleteSnapshotsOfSnapshot | D::InvalidTagQuery => (BAD, "InvalidQueryParameterValue"),
        D::OperationNotAllowedOnRootBlob => (FORBIDDEN, "OperationNotAllowedOnRootBlob"),
        D::InvalidBlockList => (BAD, "InvalidBlockList"),
        D::InvalidBlobOrBlock => (BAD, "InvalidBlobOrBlock"),
        D::BlockListTooLong => (BAD, "BlockListTooLong"),
        D::BlockCountExceedsLimit => (CONFLICT, "BlockCountExceedsLimit"),
        D::InvalidRange(_) => (RANGE, "InvalidRange"),
        D::InvalidPageRange => (RANGE, "InvalidPageRange"),
        D::PreviousSnapshotNotFound => (CONFLICT, "PreviousSnapshotNotFound"),
        D::PreviousSnapshotCannotBeNewer => (BAD, "PreviousSnapshotCannotBeNewer"),
        D::BlobOverwritten => (CONFLICT, "BlobOverwritten"),
        D::BlobUsesCustomerSpecifiedEncryption => (CONFLICT, "BlobUsesCustomerSpecifiedEncryption"),
        D::BlobCustomerSpecifiedEncryptionMismatch => {
            (CONFLICT, "BlobCustomerSpecifiedEncryptionMismatch")
        }
        D::BlobDoesNotUseCustomerSpecifiedEncryption => {
            (CONFLICT, "BlobDoesNotUseCustomerSpecifiedEncryption")
        }
        D::Policy(_) => (BAD, "InvalidXmlDocument"),
        D::RequestForbiddenByContainerEncryptionPolicy => {
            (FORBIDDEN, "RequestForbiddenByContainerEncryptionPolicy")
        }
    }
}

const fn condition_code(failure: ConditionFailure) -> (StatusCode, &'static str) {
    match failure {
        ConditionFailure::TooMany => (BAD, "MultipleConditionHeadersNotSupported"),
        ConditionFailure::Unsatisfiable => (BAD, "UnsatisfiableCondition"),
        ConditionFailure::NotFound => (NOT_FOUND, "BlobNotFound"),
        ConditionFailure::NotModified(_) => (NOT_MODIFIED, "ConditionNotMet"),
        ConditionFailure::NotMet(_) => (FAILED, "ConditionNotMet"),
        ConditionFailure::AlreadyExists => (CONFLICT, "BlobAlreadyExists"),
    }
}

const fn copy_code(refusal: CopyRefusal) -> (StatusCode, &'static str) {
    match refusal {
        CopyRefusal::ConditionNotMet => (FAILED, "ConditionNotMet"),
        CopyRefusal::SourceConditionNotMet => (FAILED, "SourceConditionNotMet"),
        CopyRefusal::TargetConditionNotMet => (FAILED, "TargetConditionNotMet"),
        CopyRefusal::SourceNotVerified => (FAILED, "CannotVerifyCopySource"),
        CopyRefusal::SourceNotModified => (NOT_MODIFIED, "CannotVerifyCopySource"),
    }
}
