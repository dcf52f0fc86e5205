"""The SDK of files: how each public method is used, and the refusals its round must meet."""

import building
import content
import copies
import directories
import files
import leases
import mounted
import service
import shares
import signatures
import stage
from azure.storage import fileshare
from azure.storage.fileshare import _download, aio
from azure.storage.fileshare.aio import _download_async
from faces import Library
from methods import BUILDS, HOST, MAKES, never, pages, sends

# The service first: it lists the shares there are.
ROUNDS = (
    service.play,
    shares.play,
    directories.play,
    files.play,
    content.play,
    leases.play,
    copies.play,
    building.play,
    mounted.play,
    signatures.play,
)


class Stage(stage.Stage):
    """The server, its mount, and the program that holds files there."""

    def __init__(self, facts, face):
        super().__init__(facts, face)
        self.mount, self.latchfs = facts["mounts"]["share"], facts["latchfs"]


TABLE = {
    "ShareServiceClient": {
        **HOST,
        "create_share": sends("ShareAlreadyExists", "InvalidResourceName"),
        "delete_share": sends("ShareHasSnapshots", "ShareNotFound"),
        "get_service_properties": sends("AuthenticationFailed"),
        "get_share_client": MAKES,
        # Over TLS, with a token, it succeeds: tls.py.
        "get_user_delegation_key": never("AuthenticationFailed"),
        "list_shares": pages(
            "AuthenticationFailed",
            "AuthorizationPermissionMismatch",
            "AuthorizationProtocolMismatch",
            "AuthorizationResourceTypeMismatch",
            "AuthorizationServiceMismatch",
            "AuthorizationSourceIPMismatch",
            "InvalidContinuationToken",
            "OutOfRangeQueryParameterValue",
        ),
        "set_service_properties": sends("InvalidXmlDocument"),
        "undelete_share": sends("ShareNotFound", "ShareAlreadyExists"),
    },
    "ShareClient": {
        **HOST,
        "acquire_lease": sends("LeaseAlreadyPresent", "InvalidHeaderValue", "ShareNotFound"),
        "create_directory": sends("ResourceAlreadyExists", "ParentNotFound"),
        "create_permission_for_share": sends("FileInvalidPermission"),
        "create_share": sends("ShareAlreadyExists"),
        "create_snapshot": sends("ShareNotFound"),
        "delete_directory": sends("DirectoryNotEmpty", "ResourceNotFound"),
        "delete_share": sends(
            "DeleteShareWhenSnapshotLeased",
            "LeaseIdMismatchWithContainerOperation",
            "LeaseIdMissing",
            "ShareHasSnapshots",
            "ShareNotFound",
        ),
        "from_share_url": BUILDS,
        "get_directory_client": MAKES,
        "get_file_client": MAKES,
        "get_permission_for_share": sends("FileInvalidPermissionKey"),
        "get_share_access_policy": sends("ShareNotFound"),
        "get_share_properties": sends(
            "LeaseIdMismatchWithContainerOperation",
            "LeaseNotPresentWithContainerOperation",
            "ShareNotFound",
            "ShareSnapshotNotFound",
        ),
        "get_share_stats": sends("LeaseIdMismatchWithContainerOperation", "ShareNotFound"),
        "list_directories_and_files": pages("ResourceNotFound", "AuthorizationPermissionMismatch"),
        "set_share_access_policy": sends("InvalidXmlDocument"),
        "set_share_metadata": sends("InvalidMetadata", "MetadataTooLarge"),
        "set_share_properties": sends("InvalidHeaderValue"),
        "set_share_quota": sends("InvalidHeaderValue", "LeaseIdMismatchWithContainerOperation"),
    },
    "ShareDirectoryClient": {
        **HOST,
        "close_all_handles": sends("ResourceNotFound"),
        "close_handle": sends("InvalidHeaderValue"),
        "create_directory": sends("ResourceAlreadyExists"),
        "create_subdirectory": sends("ParentNotFound"),
        "delete_directory": sends("DirectoryNotEmpty", "ResourceNotFound", "ResourceTypeMismatch"),
        "delete_file": sends("ResourceNotFound", "SharingViolation"),
        "delete_subdirectory": sends("ResourceNotFound"),
        "exists": sends("AuthenticationFailed"),
        "from_directory_url": BUILDS,
        "get_directory_properties": sends("ResourceNotFound"),
        "get_file_client": MAKES,
        "get_subdirectory_client": MAKES,
        "list_directories_and_files": pages("InvalidContinuationToken", "ResourceNotFound"),
        "list_handles": pages("ResourceNotFound"),
        "rename_directory": sends(
            "ParentNotFound", "ResourceAlreadyExists", "ResourceNotFound", "SharingViolation"
        ),
        "set_directory_metadata": sends("InvalidMetadata", "ResourceNotFound"),
        "set_http_headers": sends("FileInvalidPermissionKey", "InvalidHeaderValue"),
        "upload_file": sends("ParentNotFound"),
    },
    "ShareFileClient": {
        **HOST,
        "abort_copy": sends("NoPendingCopyOperation"),
        "acquire_lease": sends("LeaseAlreadyPresent", "ResourceNotFound", "SharingViolation"),
        "clear_range": sends("InvalidRange", "LeaseIdMissing", "SharingViolation"),
        "close_all_handles": sends("ResourceNotFound"),
        "close_handle": sends("InvalidHeaderValue"),
        "create_file": sends(
            "AuthorizationPermissionMismatch",
            "FileInvalidPermission",
            "LeaseIdMissing",
            "ParentNotFound",
            "ResourceTypeMismatch",
            "SMBDeletePending",
            "SharingViolation",
        ),
        "create_hardlink": sends("ParentNotFound"),
        "create_symlink": sends("ParentNotFound", "ResourceAlreadyExists"),
        "delete_file": sends(
            "AuthorizationPermissionMismatch",
            "LeaseIdMissing",
            "ReadOnlyAttribute",
            "ResourceNotFound",
            "SMBDeletePending",
            "SharingViolation",
        ),
        "download_file": sends(
            "AuthenticationFailed",
            "AuthorizationPermissionMismatch",
            "FileLockConflict",
            "InvalidRange",
            "LeaseIdMismatchWithFileOperation",
            "ResourceNotFound",
            "SMBDeletePending",
            "ShareSnapshotNotFound",
            "SharingViolation",
        ),
        "exists": sends("AuthenticationFailed", "SMBDeletePending"),
        "from_file_url": BUILDS,
        "get_file_properties": sends(
            "AuthenticationFailed",
            "LeaseIdMismatchWithFileOperation",
            "ResourceNotFound",
            "SMBDeletePending",
        ),
        "get_ranges": sends("ResourceNotFound", "SharingViolation"),
        "get_ranges_diff": sends("PreviousSnapshotNotFound"),
        "get_symlink": sends("ParentNotFound", "ResourceNotFound"),
        "list_handles": pages("ResourceNotFound"),
        "list_ranges": pages("InvalidContinuationToken", "ResourceNotFound", "SharingViolation"),
        "list_ranges_diff": pages("PreviousSnapshotNotFound"),
        "rename_file": sends(
            "LeaseIdMissing",
            "ParentNotFound",
            "ReadOnlyAttribute",
            "ResourceAlreadyExists",
            "ResourceNotFound",
            "SharingViolation",
        ),
        "resize_file": sends(
            "AuthorizationPermissionMismatch",
            "FileLockConflict",
            "LeaseIdMissing",
            "ReadOnlyAttribute",
            "ResourceNotFound",
            "SharingViolation",
        ),
        "set_file_metadata": sends(
            "InvalidMetadata", "LeaseIdMissing", "MetadataTooLarge", "SMBDeletePending"
        ),
        "set_http_headers": sends("InvalidHeaderValue", "ResourceNotFound"),
        "start_copy_from_url": sends(
            "CannotVerifyCopySource", "ResourceNotFound", "SharingViolation"
        ),
        "upload_file": sends("InvalidResourceName", "ParentNotFound", "SharingViolation"),
        "upload_range": sends(
            "AuthorizationPermissionMismatch",
            "FileLockConflict",
            "InvalidRange",
            "LeaseIdMismatchWithFileOperation",
            "LeaseIdMissing",
            "LeaseNotPresentWithFileOperation",
            "Md5Mismatch",
            "ReadOnlyAttribute",
            "ResourceNotFound",
            "SMBDeletePending",
            "ShareSnapshotOperationNotSupported",
            "SharingViolation",
        ),
        "upload_range_from_url": sends(
            "Crc64Mismatch", "InvalidRange", "ResourceNotFound", "SourceConditionNotMet"
        ),
    },
    "ShareLeaseClient": {
        "acquire": sends("LeaseAlreadyPresent", "LeaseIsBreakingAndCannotBeAcquired"),
        "break_lease": sends("LeaseNotPresentWithLeaseOperation"),
        "change": sends("LeaseIdMismatchWithLeaseOperation", "LeaseIsBreakingAndCannotBeChanged"),
        "release": sends("LeaseIdMismatchWithLeaseOperation"),
        "renew": sends("LeaseIdMismatchWithLeaseOperation", "LeaseIsBrokenAndCannotBeRenewed"),
    },
    "StorageStreamDownloader": {
        "chunks": pages("ResourceNotFound"),
        "content_as_bytes": sends("ResourceNotFound"),
        "content_as_text": sends("ResourceNotFound"),
        "download_to_stream": sends("ResourceNotFound"),
        "readall": sends("ResourceNotFound"),
        "readinto": sends("ResourceNotFound"),
    },
}

LIBRARY = Library(
    fileshare,
    aio,
    (
        "ShareServiceClient",
        "ShareClient",
        "ShareDirectoryClient",
        "ShareFileClient",
        "ShareLeaseClient",
    ),
    ("generate_account_sas", "generate_share_sas", "generate_file_sas"),
    TABLE,
    # What `download_file` gives.
    {
        "StorageStreamDownloader": (
            _download.StorageStreamDownloader,
            _download_async.StorageStreamDownloader,
        )
    },
)
