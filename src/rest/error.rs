//! From a cause to status and code: one exhaustive table for each kind of refusal.
//!
//! Sources: LOCKING section 8 and 4.2, with C1 to C9 as decided there; FILEREST section 7. The
//! message is the cause's own, which names the holder.

use std::borrow::Cow;

use hyper::StatusCode;

use super::refusal::{Code, Refusal};
use crate::core::lease::LeaseDenial;
use crate::core::{Denial, MetadataError, NameError};
use crate::engine::programs::told;
use crate::engine::{AccountError, Error, ShareDenial, StoreError};

const BAD_REQUEST: StatusCode = StatusCode::BAD_REQUEST;
const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;
const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;
const CONFLICT: StatusCode = StatusCode::CONFLICT;
const FAILED: StatusCode = StatusCode::PRECONDITION_FAILED;
const TOO_LARGE: StatusCode = StatusCode::PAYLOAD_TOO_LARGE;
const BAD_RANGE: StatusCode = StatusCode::RANGE_NOT_SATISFIABLE;
const BROKEN: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;
const BUSY: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denial) => denial.into(),
            Error::Store(error) => error.into(),
        }
    }
}

impl From<Denial> for Refusal {
    fn from(denial: Denial) -> Self {
        let (status, code) = denial_code(&denial);
        let size = match denial {
            Denial::InvalidRange { size } => Some(size),
            _ => None,
        };
        let message: Cow<'static, str> = match denial {
            // Seen on the wire in these words (LOCKING section 8).
            Denial::ReadOnly | Denial::CannotDelete => {
                "The specified resource is read-only and cannot be modified at this time.".into()
            }
            other => sentence(&told(&other)).into(),
        };
        Self { status, code, size, ..Self::new(status, "", message) }
    }
}

fn denial_code(denial: &Denial) -> (StatusCode, Code) {
    let (status, code) = match denial {
        Denial::DeletePending(_) | Denial::ParentDeletePending { .. } => {
            return (CONFLICT, Code::DeletePending);
        }
        Denial::SharingViolation { .. }
        | Denial::Open(_)
        | Denial::OpenBelow(_)
        | Denial::Leased => (CONFLICT, "SharingViolation"),
        Denial::RangeLocked { .. } | Denial::LockNotGranted { .. } => {
            (CONFLICT, "FileLockConflict")
        }
        Denial::Lease(denial) => lease_code(*denial),
        Denial::ReadOnly | Denial::CannotDelete => (CONFLICT, "ReadOnlyAttribute"),
        Denial::NotFound | Denial::HandleClosed => (NOT_FOUND, "ResourceNotFound"),
        Denial::PathNotFound => (NOT_FOUND, "ParentNotFound"),
        Denial::NameTaken => (CONFLICT, "ResourceAlreadyExists"),
        Denial::IsDirectory | Denial::NotDirectory | Denial::NotOnDirectory => {
            (CONFLICT, "ResourceTypeMismatch")
        }
        Denial::DirectoryNotEmpty => (CONFLICT, "DirectoryNotEmpty"),
        Denial::InvalidParameter(_) => (BAD_REQUEST, "InvalidHeaderValue"),
        Denial::RangeNotLocked | Denial::InvalidLockRange | Denial::HiddenMismatch => {
            (BAD_REQUEST, "InvalidInput")
        }
        Denial::AccessDenied => (FORBIDDEN, "InsufficientAccountPermissions"),
        Denial::EndOfFile | Denial::InvalidRange { .. } => (BAD_RANGE, "InvalidRange"),
        Denial::BodyTooLarge { .. } => (TOO_LARGE, "RequestBodyTooLarge"),
        Denial::FileTooLarge { .. } => (BAD_REQUEST, "OutOfRangeInput"),
        Denial::Metadata(error) => metadata_code(error),
        Denial::CopyPending => (CONFLICT, "PendingCopyOperation"),
        Denial::NoPendingCopy => (CONFLICT, "NoPendingCopyOperation"),
        Denial::CopyIdMismatch => (CONFLICT, "CopyIdMismatch"),
        Denial::CopySourceChanged => (CONFLICT, "CannotVerifyCopySource"),
        Denial::OtherGeneration => (CONFLICT, "FileGenerationMismatch"),
        Denial::ShareRoot => (CONFLICT, "CannotDeleteFileOrDirectory"),
        Denial::ShareDeleted => (NOT_FOUND, "ShareNotFound"),
        Denial::TooManyHandles => (BAD_REQUEST, "HandleLimitExceeded"),
        Denial::Cancelled | Denial::TooManyWaiting => (BUSY, "ServerBusy"),
    };
    (status, Code::Is(code))
}

/// A failed condition is 412, a lease action that cannot be 409 (LOCKING 4.2, C4).
fn lease_code(denial: LeaseDenial) -> (StatusCode, &'static str) {
    match denial {
        LeaseDenial::LeaseIdMissing(_) => (FAILED, "LeaseIdMissing"),
        LeaseDenial::LeaseIdMismatchWithFileOperation => {
            (FAILED, "LeaseIdMismatchWithFileOperation")
        }
        LeaseDenial::LeaseIdMismatchWithShareOperation => {
            (FAILED, "LeaseIdMismatchWithShareOperation")
        }
        LeaseDenial::LeaseNotPresentWithFileOperation => {
            (FAILED, "LeaseNotPresentWithFileOperation")
        }
        LeaseDenial::LeaseNotPresentWithShareOperation => {
            (FAILED, "LeaseNotPresentWithShareOperation")
        }
        LeaseDenial::LeaseLost(_) => (FAILED, "LeaseLost"),
        LeaseDenial::LeaseAlreadyPresent => (CONFLICT, "LeaseAlreadyPresent"),
        LeaseDenial::LeaseIdMismatchWithLeaseOperation(_) => {
            (CONFLICT, "LeaseIdMismatchWithLeaseOperation")
        }
        LeaseDenial::LeaseNotPresentWithLeaseOperation(_) => {
            (CONFLICT, "LeaseNotPresentWithLeaseOperation")
        }
        LeaseDenial::LeaseIsBreakingAndCannotBeAcquired => {
            (CONFLICT, "LeaseIsBreakingAndCannotBeAcquired")
        }
        LeaseDenial::LeaseIsBreakingAndCannotBeChanged => {
            (CONFLICT, "LeaseIsBreakingAndCannotBeChanged")
        }
        LeaseDenial::LeaseIsBrokenAndCannotBeRenewed => {
            (CONFLICT, "LeaseIsBrokenAndCannotBeRenewed")
        }
        LeaseDenial::InvalidDuration(_) | LeaseDenial::InvalidBreakPeriod => {
            (BAD_REQUEST, "InvalidHeaderValue")
        }
        LeaseDenial::MissingDuration => (BAD_REQUEST, "MissingRequiredHeader"),
    }
}

fn metadata_code(error: &MetadataError) -> (StatusCode, &'static str) {
    match error {
        MetadataError::EmptyName => (BAD_REQUEST, "EmptyMetadataKey"),
        MetadataError::InvalidName(_) | MetadataError::InvalidValue(_) => {
            (BAD_REQUEST, "InvalidMetadata")
        }
        MetadataError::TooLarge(_) => (BAD_REQUEST, "MetadataTooLarge"),
    }
}

/// What the disk could not do. Only what nobody outside can cure is a 500: clients try those
/// again for minutes (FILEREST 10.16).
impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match store_code(&error) {
            Some((status, code)) => Self::new(status, code, sentence(&error.to_string())),
            None => broken(&error),
        }
    }
}

fn store_code(error: &StoreError) -> Option<(StatusCode, &'static str)> {
    Some(match error {
        StoreError::NotFound => (NOT_FOUND, "ResourceNotFound"),
        StoreError::ParentNotFound => (NOT_FOUND, "ParentNotFound"),
        StoreError::AlreadyExists => (CONFLICT, "ResourceAlreadyExists"),
        StoreError::NotADirectory | StoreError::IsADirectory => (CONFLICT, "ResourceTypeMismatch"),
        StoreError::NotEmpty => (CONFLICT, "DirectoryNotEmpty"),
        StoreError::NoSpace => (TOO_LARGE, "ShareSizeLimitReached"),
        StoreError::ReadOnly | StoreError::PermissionDenied => {
            (FORBIDDEN, "InsufficientAccountPermissions")
        }
        StoreError::NameTooLong => (BAD_REQUEST, "InvalidFileOrDirectoryPathName"),
        StoreError::Replaced | StoreError::WouldWait | StoreError::InUse { .. } => {
            (BUSY, "ServerBusy")
        }
        StoreError::Damaged { .. } | StoreError::Io { .. } => return None,
    })
}

impl From<AccountError> for Refusal {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Denied(denial) => denial.into(),
            AccountError::Store(error) => error.into(),
            AccountError::Share { source, .. } => source.into(),
            AccountError::Root(_) | AccountError::Snapshot(_) => {
                let lack = error.store_error().filter(|error| is_lack(error));
                match lack.and_then(store_code) {
                    Some((status, code)) => Self::new(status, code, sentence(&error.to_string())),
                    None => broken(&error),
                }
            }
        }
    }
}

/// Room, or the right to write, is lacking whatever was asked for; anything else that befalls a
/// part of a share says nothing about the share.
fn is_lack(error: &StoreError) -> bool {
    matches!(error, StoreError::NoSpace | StoreError::ReadOnly | StoreError::PermissionDenied)
}

fn broken(error: &dyn std::error::Error) -> Refusal {
    log::error!("a request failed: {error}");
    Refusal::new(BROKEN, "InternalError", sentence(&error.to_string()))
}

impl From<ShareDenial> for Refusal {
    fn from(denial: ShareDenial) -> Self {
        let (status, code) = share_code(&denial);
        Self::new(status, code, denial.to_string())
    }
}

fn share_code(denial: &ShareDenial) -> (StatusCode, &'static str) {
    match denial {
        ShareDenial::ShareNotFound => (NOT_FOUND, "ShareNotFound"),
        ShareDenial::ShareAlreadyExists => (CONFLICT, "ShareAlreadyExists"),
        ShareDenial::ShareBeingDeleted => (CONFLICT, "ShareBeingDeleted"),
        ShareDenial::ShareHasSnapshots => (CONFLICT, "ShareHasSnapshots"),
        ShareDenial::DeleteShareWhenSnapshotLeased => (CONFLICT, "DeleteShareWhenSnapshotLeased"),
        ShareDenial::ShareSnapshotNotFound => (NOT_FOUND, "ShareSnapshotNotFound"),
        ShareDenial::PreviousSnapshotNotFound => (CONFLICT, "PreviousSnapshotNotFound"),
        ShareDenial::PreviousSnapshotNotOlder => (BAD_REQUEST, "InvalidQueryParameterValue"),
        ShareDenial::ShareSnapshotCountExceeded => (CONFLICT, "ShareSnapshotCountExceeded"),
        ShareDenial::ShareSnapshotInProgress => (CONFLICT, "ShareSnapshotInProgress"),
        ShareDenial::ShareSnapshotOperationNotSupported => {
            (BAD_REQUEST, "ShareSnapshotOperationNotSupported")
        }
        ShareDenial::SnapshotCancelled => (BUSY, "ServerBusy"),
        ShareDenial::InvalidResourceName(_) => (BAD_REQUEST, "InvalidResourceName"),
        ShareDenial::Lease(denial) => lease_code(*denial),
        ShareDenial::Metadata(error) => metadata_code(error),
        ShareDenial::OutOfRangeQuota(_)
        | ShareDenial::UnsupportedProtocol(_)
        | ShareDenial::UnknownAccessTier(_)
        | ShareDenial::PermissionFormatUnsupported => (BAD_REQUEST, "InvalidHeaderValue"),
        ShareDenial::TooManyPolicies(_) | ShareDenial::InvalidPolicy(_) => {
            (BAD_REQUEST, "InvalidXmlDocument")
        }
        ShareDenial::FileInvalidPermission(_) | ShareDenial::FilePermissionTooLarge => {
            (BAD_REQUEST, "FileInvalidPermission")
        }
        ShareDenial::FileInvalidPermissionKey => (BAD_REQUEST, "FileInvalidPermissionKey"),
        ShareDenial::InvalidContinuationToken => (BAD_REQUEST, "InvalidContinuationToken"),
        ShareDenial::OneDirectoryOnly => (FORBIDDEN, "InsufficientAccountPermissions"),
    }
}

/// A path that no file can have (FILEREST section 8).
impl From<NameError> for Refusal {
    fn from(error: NameError) -> Self {
        let code = match &error {
            NameError::BadEscape | NameError::NotUtf8 => "InvalidUri",
            NameError::ComponentTooLong(_) | NameError::PathTooLong | NameError::TooDeep => {
                "InvalidFileOrDirectoryPathName"
            }
            NameError::Empty
            | NameError::OnlyDots(_)
            | NameError::Forbidden { .. }
            | NameError::Control(_)
            | NameError::Reserved(_)
            | NameError::ShareLength
            | NameError::ShareCharacter(_)
            | NameError::ShareHyphen => "InvalidResourceName",
        };
        Self::bad(code, sentence(&error.to_string()))
    }
}

/// A cause as a sentence, the way the service writes its messages.
fn sentence(cause: &str) -> String {
    let mut letters = cause.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if cause.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::lease::LeaseOn;

    #[test]
    fn a_wrong_lease_id_is_a_failed_condition_and_a_refused_action_a_conflict() {
        let refusal = Refusal::from(Denial::Lease(LeaseDenial::LeaseIdMissing(LeaseOn::File)));
        assert_eq!(refusal.status, FAILED);
        assert_eq!(refusal.code, Code::Is("LeaseIdMissing"));
        let refusal = Refusal::from(Denial::Lease(LeaseDenial::LeaseAlreadyPresent));
        assert_eq!(refusal.status, CONFLICT);
        assert_eq!(refusal.message, "There is already a lease present.");
    }

    #[test]
    fn read_only_is_a_conflict_in_the_words_of_the_service() {
        let refusal = Refusal::from(Denial::ReadOnly);
        assert_eq!((refusal.status, refusal.code), (CONFLICT, Code::Is("ReadOnlyAttribute")));
        assert!(refusal.message.ends_with("cannot be modified at this time."));
    }

    #[test]
    fn a_cause_becomes_a_sentence() {
        assert_eq!(sentence("no such file"), "No such file.");
        assert_eq!(sentence("Done."), "Done.");
        assert_eq!(sentence(""), ".");
    }
}
