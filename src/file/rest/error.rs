//! From a cause to status and code: one exhaustive table for each kind of refusal.
//!
//! A message is the service's sentence for the code, then in brackets the cause with the holder,
//! its program and its handle. The sentences are in [`crate::http::frame::wording`].

use std::sync::Arc;

use hyper::StatusCode;
use rustix::io::Errno;

use crate::file::rules::ranges::LockKind;
use crate::file::rules::{Denial, FileNameError, Holder};
use crate::file::service::{FileError, FileServiceError, ShareDenial, SnapshotError, StoreError};
use crate::http::frame::refusal::{Code, Denied, Refusal, lease_code, metadata_code, name_code};
use crate::journal::programs::resolved;

const BAD_REQUEST: StatusCode = StatusCode::BAD_REQUEST;
const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;
const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;
const CONFLICT: StatusCode = StatusCode::CONFLICT;
const TOO_LARGE: StatusCode = StatusCode::PAYLOAD_TOO_LARGE;
const BAD_RANGE: StatusCode = StatusCode::RANGE_NOT_SATISFIABLE;
const BROKEN: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;
const BUSY: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Denied(denial) => denial.into(),
            FileError::Store(error) => error.into(),
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
        let spelled = match code {
            Code::Is(name) => name,
            Code::DeletePending => "DeletePending",
        };
        let refusal = Self::explained(status, spelled, cause(&denial));
        Self { code, size, denied: Some(Box::new(Denied::By(Arc::new(denial)))), ..refusal }
    }
}

/// The cause of a refusal: the holder, where there is one; nothing where the service's sentence
/// says it all.
fn cause(denial: &Denial) -> String {
    let holder = denial.holder().map(|holder| {
        let owner = resolved(&holder.owner);
        let who = match (&owner.program, owner.pid) {
            (Some(program), 0) => format!("\"{program}\""),
            (Some(program), pid) => format!("\"{program}\" (pid {pid})"),
            (None, 0) => owner.client.name.clone(),
            (None, pid) => format!("pid {pid}"),
        };
        (who, holder)
    });
    match (denial, holder) {
        (Denial::SharingViolation { .. } | Denial::Open(_), Some((who, holder))) => {
            let Holder { access, share, handle, .. } = holder;
            format!("{who} has it open for {access}, sharing {share}; handle {handle}")
        }
        (Denial::ParentShared { .. }, Some((who, holder))) => {
            let Holder { access, share, handle, .. } = holder;
            format!(
                "{who} has the directory of the new name open for {access}, sharing {share}; \
                 handle {handle}"
            )
        }
        (Denial::OpenBelow(_), Some((who, holder))) => {
            let Holder { access, share, handle, .. } = holder;
            format!("{who} has a file below it open for {access}, sharing {share}; handle {handle}")
        }
        (Denial::DeletePending(_), Some((who, holder))) => {
            format!("it is removed when {who} closes it; handle {}", holder.handle)
        }
        (Denial::ParentDeletePending { .. }, Some((who, holder))) => {
            format!("its directory is removed when {who} closes it; handle {}", holder.handle)
        }
        (Denial::RangeLocked { lock, .. } | Denial::LockNotGranted { lock, .. }, holder) => {
            let (who, handle) = match holder {
                Some((who, holder)) => (who, format!("; handle {}", holder.handle)),
                None => (format!("pid {}", lock.pid), String::new()),
            };
            let kind = match lock.kind {
                LockKind::Shared => "shared",
                LockKind::Exclusive => "exclusive",
            };
            format!("{who} has locked {} ({kind}){handle}", lock.range)
        }
        (
            Denial::ReadOnly
            | Denial::CannotDelete
            | Denial::NotFound
            | Denial::NameTaken
            | Denial::DirectoryNotEmpty
            | Denial::ShareDeleted
            | Denial::CopyPending
            | Denial::NoPendingCopy
            | Denial::CopyIdMismatch,
            _,
        ) => String::new(),
        (other, _) => other.to_string(),
    }
}

/// The status and the code of a refusal, without its text: that one names processes, which takes a
/// look at `/proc`.
pub fn denial_code(denial: &Denial) -> (StatusCode, Code) {
    let (status, code) = match denial {
        Denial::DeletePending(_) | Denial::ParentDeletePending { .. } => {
            return (CONFLICT, Code::DeletePending);
        }
        Denial::SharingViolation { .. }
        | Denial::ParentShared { .. }
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
        Denial::Metadata(error) => (BAD_REQUEST, metadata_code(error)),
        Denial::CopyPending => (CONFLICT, "PendingCopyOperation"),
        Denial::NoPendingCopy => (CONFLICT, "NoPendingCopyOperation"),
        Denial::CopyIdMismatch => (CONFLICT, "CopyIdMismatch"),
        Denial::CopySourceChanged => (CONFLICT, "CannotVerifyCopySource"),
        Denial::OtherGeneration => (CONFLICT, "FileGenerationMismatch"),
        Denial::ShareRoot => (CONFLICT, "CannotDeleteFileOrDirectory"),
        Denial::ShareDeleted => (NOT_FOUND, "ShareNotFound"),
        Denial::TooManyHandles => (BAD_REQUEST, "HandleLimitExceeded"),
        Denial::Cancelled | Denial::TooManyWaiting | Denial::ShareReplaced => (BUSY, "ServerBusy"),
    };
    (status, Code::Is(code))
}

/// The refusal for an error of the disk. Only errors that no client can cure are a 500: clients
/// repeat those for minutes.
impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match store_code(&error) {
            Some((status, code)) => Self::explained(status, code, store_cause(&error)),
            None => broken(&error),
        }
    }
}

/// The cause of a store error; nothing where the service's sentence says it all.
fn store_cause(error: &StoreError) -> String {
    match error {
        StoreError::NotFound
        | StoreError::ParentNotFound
        | StoreError::AlreadyExists
        | StoreError::NotEmpty => String::new(),
        other => other.to_string(),
    }
}

fn store_code(error: &StoreError) -> Option<(StatusCode, &'static str)> {
    Some(match error {
        StoreError::NotFound => (NOT_FOUND, "ResourceNotFound"),
        StoreError::ParentNotFound => (NOT_FOUND, "ParentNotFound"),
        StoreError::AlreadyExists => (CONFLICT, "ResourceAlreadyExists"),
        StoreError::NotADirectory | StoreError::IsADirectory => (CONFLICT, "ResourceTypeMismatch"),
        StoreError::NotEmpty => (CONFLICT, "DirectoryNotEmpty"),
        StoreError::NoSpace | StoreError::FileTooLong => (TOO_LARGE, "ShareSizeLimitReached"),
        StoreError::ReadOnly | StoreError::PermissionDenied => {
            (FORBIDDEN, "InsufficientAccountPermissions")
        }
        StoreError::NameTooLong => (BAD_REQUEST, "InvalidFileOrDirectoryPathName"),
        StoreError::Replaced | StoreError::InUse { .. } => (BUSY, "ServerBusy"),
        StoreError::Io { source, .. } => return io_code(source),
        StoreError::Damaged { .. } => return None,
    })
}

/// Status and code of a system error that is about the machine, not about the request.
fn io_code(error: &std::io::Error) -> Option<(StatusCode, &'static str)> {
    match Errno::from_io_error(error)? {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Some((TOO_LARGE, "ShareSizeLimitReached")),
        // Descriptors, memory or threads are short: the same request succeeds later.
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => Some((BUSY, "ServerBusy")),
        Errno::ROFS | Errno::ACCESS | Errno::PERM => {
            Some((FORBIDDEN, "InsufficientAccountPermissions"))
        }
        _ => None,
    }
}

impl From<FileServiceError> for Refusal {
    fn from(error: FileServiceError) -> Self {
        match error {
            FileServiceError::Denied(denial) => denial.into(),
            FileServiceError::Store(error) => error.into(),
            FileServiceError::Share { source, .. } => source.into(),
            FileServiceError::Root(_) | FileServiceError::Snapshot(_) => {
                if is_root_missing(&error) {
                    return ShareDenial::ShareNotFound.into();
                }
                let lack = error.store_error().filter(|error| is_lack(error));
                match lack.and_then(store_code) {
                    Some((status, code)) => Self::explained(status, code, &error),
                    None => broken(&error),
                }
            }
        }
    }
}

/// True if space or the right to write is lacking, which is so for every request; any other error
/// of a part of a share says nothing about the share.
fn is_lack(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::NoSpace
            | StoreError::ReadOnly
            | StoreError::PermissionDenied
            | StoreError::Io { .. }
    )
}

/// True if the directory of the share itself is gone: the data was moved away.
fn is_root_missing(error: &FileServiceError) -> bool {
    match error {
        FileServiceError::Snapshot(SnapshotError::Store(StoreError::NotFound)) => true,
        FileServiceError::Snapshot(SnapshotError::Entry { path, source }) => {
            path.as_os_str().is_empty() && matches!(source, StoreError::NotFound)
        }
        _ => false,
    }
}

fn broken(error: &dyn std::error::Error) -> Refusal {
    log::error!("a request failed: {error}");
    Refusal::explained(BROKEN, "InternalError", error)
}

impl From<ShareDenial> for Refusal {
    fn from(denial: ShareDenial) -> Self {
        let denial = match denial {
            ShareDenial::Name(error) => return error.into(),
            other => other,
        };
        let (status, code) = share_code(&denial);
        Self::explained(status, code, denial)
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
        ShareDenial::Name(error) => (BAD_REQUEST, name_code(error)),
        ShareDenial::Lease(denial) => lease_code(*denial),
        ShareDenial::Metadata(error) => (BAD_REQUEST, metadata_code(error)),
        ShareDenial::OutOfRangeQuota(_)
        | ShareDenial::UnsupportedProtocol(_)
        | ShareDenial::UnknownAccessTier(_)
        | ShareDenial::PermissionFormatUnsupported => (BAD_REQUEST, "InvalidHeaderValue"),
        ShareDenial::Policy(_) => (BAD_REQUEST, "InvalidXmlDocument"),
        ShareDenial::FileInvalidPermission(_) | ShareDenial::FilePermissionTooLarge => {
            (BAD_REQUEST, "FileInvalidPermission")
        }
        ShareDenial::FileInvalidPermissionKey => (BAD_REQUEST, "FileInvalidPermissionKey"),
        ShareDenial::InvalidContinuationToken => (BAD_REQUEST, "InvalidContinuationToken"),
        ShareDenial::OneDirectoryOnly => (FORBIDDEN, "InsufficientAccountPermissions"),
    }
}

/// A path that no file can have.
impl From<FileNameError> for Refusal {
    fn from(error: FileNameError) -> Self {
        Self::bad_because(path_code(&error), error)
    }
}

fn path_code(error: &FileNameError) -> &'static str {
    match error {
        FileNameError::BadEscape | FileNameError::NotUtf8 => "InvalidUri",
        FileNameError::ComponentTooLong(_)
        | FileNameError::PathTooLong
        | FileNameError::TooDeep => "InvalidFileOrDirectoryPathName",
        FileNameError::Empty
        | FileNameError::OnlyDots(_)
        | FileNameError::Forbidden { .. }
        | FileNameError::Control(_)
        | FileNameError::Reserved(_) => "InvalidResourceName",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::lease::LeaseDenial;
    use crate::rules::lease::LeaseOn;

    #[test]
    fn a_wrong_lease_id_is_a_failed_condition_and_a_refused_action_a_conflict() {
        let refusal = Refusal::from(Denial::Lease(LeaseDenial::LeaseIdMissing(LeaseOn::File)));
        assert_eq!(refusal.status, StatusCode::PRECONDITION_FAILED);
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
    fn a_cause_without_more_to_say_leaves_the_sentence_alone() {
        let refusal = Refusal::from(StoreError::NotFound);
        assert_eq!(refusal.message, "The specified resource does not exist.");
        let refusal = Refusal::from(StoreError::NoSpace);
        let message =
            "The share size limit has been reached. [latchfs: no space left for the share]";
        assert_eq!(refusal.message, message);
    }

    #[test]
    fn a_lack_of_descriptors_is_a_busy_server_and_a_full_disk_a_full_share() {
        let io = |errno: Errno| {
            let refusal = Refusal::from(StoreError::Io { what: "x", source: errno.into() });
            (refusal.status.as_u16(), refusal.code)
        };
        assert_eq!(io(Errno::MFILE), (503, Code::Is("ServerBusy")));
        assert_eq!(io(Errno::NOSPC), (413, Code::Is("ShareSizeLimitReached")));
        assert_eq!(io(Errno::IO), (500, Code::Is("InternalError")));
    }
}
