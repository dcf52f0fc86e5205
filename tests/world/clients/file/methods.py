"""The table: every public method of the SDK, how it is used, and the refusals its round must meet.

`differences` compares it with the SDK as installed and with what was called: a method that is new,
gone, never called, or never refused as its row says, is named. So a new version of the SDK shows
up as rows that are missing.
"""
import dataclasses
import inspect

from azure.storage import fileshare
from azure.storage.fileshare import aio

from faces import CLIENTS, GOOD, SIGNERS, classes, kind, public


@dataclasses.dataclass(frozen=True)
class Row:
    """A method: `kind` as aio has it, the codes to be met, or why it is answered with 501."""

    kind: str
    codes: tuple = ()
    absent: str = ""
    token: bool = False


def sends(*codes):
    """Awaited; sends a request, which is refused with each of these codes in turn."""
    return Row("awaited", codes)


def pages(*codes):
    """Not awaited; sends requests when it is read."""
    return Row("plain", codes)


def by_token(*codes):
    """Succeeds with a bearer token alone, which tls.py has; here it is refused with these codes."""
    return Row("awaited", codes, token=True)


def absent(why):
    """Answered with 501."""
    return Row("awaited", absent=why)


# Sends nothing, so nothing is refused.
MAKES, BUILDS, SAYS, CLOSES = (Row(kind) for kind in ("plain", "builder", "property", "awaited"))

HOST = {
    "api_version": SAYS,
    "close": CLOSES,
    "from_connection_string": BUILDS,
    "location_mode": SAYS,
    "primary_endpoint": SAYS,
    "primary_hostname": SAYS,
    "secondary_endpoint": SAYS,
    "secondary_hostname": SAYS,
    "url": SAYS,
}
NFS = "a link, which NFS shares alone have"

TABLE = {
    "ShareServiceClient": {
        **HOST,
        "create_share": sends("ShareAlreadyExists", "InvalidResourceName"),
        "delete_share": sends("ShareHasSnapshots", "ShareNotFound"),
        "get_service_properties": sends("AuthenticationFailed"),
        "get_share_client": MAKES,
        "get_user_delegation_key": by_token("AuthenticationFailed"),
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
        "create_hardlink": absent(NFS),
        "create_symlink": absent(NFS),
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
        "get_symlink": absent(NFS),
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


def differences(face, waived=()):
    """What the table, the SDK, and the calls of `face` do not agree on."""
    yield from of_names()
    for owner, rows in TABLE.items():
        yield from of_class(face.name, owner, rows)
        for name, row in rows.items():
            noted = face.noted.get((owner, name), set())
            yield from (
                f"{owner}.{name} {what}"
                for what in of_calls(row, noted, (owner, name) in waived)
            )
    for name in SIGNERS:
        if ("", name) not in face.noted:
            yield f"{name} was never called"


def of_names():
    """Whole clients and generators that are new or gone."""
    exported = {name for name in fileshare.__all__ if name.endswith("Client")}
    for found in (exported, set(aio.__all__)):
        yield from (f"the client {name} is new or gone" for name in found ^ set(CLIENTS))
    makers = {name for name in fileshare.__all__ if name.startswith("generate_")}
    yield from (f"{name} is new or gone" for name in makers ^ set(SIGNERS))


def of_class(face, owner, rows):
    """Methods that are new, gone, or used in another way."""
    own, twin = classes(face)[owner], classes("aio")[owner]
    for name in sorted(public(own) | set(rows)):
        if name not in rows:
            yield f"{owner}.{name} is new: it needs a round and a row"
        elif name not in public(own):
            yield f"{owner}.{name} is gone"
        elif rows[name].kind != kind(twin, name):
            yield f"{owner}.{name} is {kind(twin, name)} now, not {rows[name].kind}"
        elif face == "sync" and inspect.iscoroutinefunction(getattr(own, name)):
            yield f"{owner}.{name} is a coroutine in the sync face"


def of_calls(row, noted, waived):
    """What a row promises and the rounds did not meet."""
    if row.absent:
        wanted, others = {"NotImplemented"}, noted - {"NotImplemented"}
        yield from (f"came to {outcome}, and not to 501" for outcome in others)
    else:
        wanted = set(row.codes) | (set() if waived or row.token else {GOOD})
    for outcome in sorted(wanted - noted):
        yield "was never called with success" if outcome == GOOD else f"never met {outcome}"
