"""What rounds assert with: refusals by code and class, times, and gaps that are known."""
import datetime

import isodate
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)

# How long a condition may take to come true.
PATIENCE = datetime.timedelta(seconds=20)

# The status of each code that a round meets. The SDK goes by status, and for a few by code.
STATUSES = {
    "AuthenticationFailed": 403,
    "AuthorizationPermissionMismatch": 403,
    "AuthorizationProtocolMismatch": 403,
    "AuthorizationResourceTypeMismatch": 403,
    "AuthorizationServiceMismatch": 403,
    "AuthorizationSourceIPMismatch": 403,
    "CannotVerifyCopySource": 403,
    "CopyIdMismatch": 409,
    "Crc64Mismatch": 400,
    "DeleteShareWhenSnapshotLeased": 409,
    "DirectoryNotEmpty": 409,
    "FileInvalidPermission": 400,
    "FileInvalidPermissionKey": 400,
    "FileLockConflict": 409,
    "InvalidContinuationToken": 400,
    "InvalidHeaderValue": 400,
    "InvalidMetadata": 400,
    "InvalidRange": 416,
    "InvalidResourceName": 400,
    "InvalidXmlDocument": 400,
    "LeaseAlreadyPresent": 409,
    "LeaseIdMismatchWithFileOperation": 412,
    "LeaseIdMismatchWithLeaseOperation": 409,
    "LeaseIdMismatchWithContainerOperation": 412,
    "LeaseIdMismatchWithShareOperation": 412,
    "LeaseIdMissing": 412,
    "LeaseIsBreakingAndCannotBeAcquired": 409,
    "LeaseIsBreakingAndCannotBeChanged": 409,
    "LeaseIsBrokenAndCannotBeRenewed": 409,
    "LeaseNotPresentWithContainerOperation": 412,
    "LeaseNotPresentWithFileOperation": 412,
    "LeaseNotPresentWithLeaseOperation": 409,
    "LeaseNotPresentWithShareOperation": 412,
    "Md5Mismatch": 400,
    "MetadataTooLarge": 400,
    "NoPendingCopyOperation": 409,
    "NotImplemented": 501,
    "OutOfRangeQueryParameterValue": 400,
    "ParentNotFound": 404,
    "PendingCopyOperation": 409,
    "PreviousSnapshotNotFound": 409,
    "ReadOnlyAttribute": 409,
    "ResourceAlreadyExists": 409,
    "ResourceNotFound": 404,
    "ResourceTypeMismatch": 409,
    "ShareAlreadyExists": 409,
    "ShareHasSnapshots": 409,
    "ShareNotFound": 404,
    "ShareSnapshotNotFound": 404,
    "ShareSnapshotOperationNotSupported": 400,
    "SharingViolation": 409,
    "SMBDeletePending": 409,
    "SourceConditionNotMet": 412,
}
BY_STATUS = {404: ResourceNotFoundError, 409: ResourceExistsError}
BY_CODE = {
    "AuthenticationFailed": ClientAuthenticationError,
    "CannotVerifyCopySource": ResourceNotFoundError,
}


async def refused(code, call):
    """Awaits `call`, which must be refused with that code; gives the message."""
    kind = BY_CODE.get(code) or BY_STATUS.get(STATUSES[code], HttpResponseError)
    try:
        given = await call
    except HttpResponseError as error:
        met = (error.error_code, error.status_code, type(error))
        assert met == (code, STATUSES[code], kind), f"{met}, not {code}: {error}"
        return str(error)
    raise AssertionError(f"{code} expected, and it gave {given!r}")


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def moment(time):
    """A time of an answer: the SDK reads some and leaves others as text."""
    if isinstance(time, str):
        time = isodate.parse_datetime(time)
    return time if time.tzinfo else time.replace(tzinfo=datetime.timezone.utc)


def recent(time):
    """Asserts that a time is the time of this run."""
    assert abs(now() - moment(time)) < datetime.timedelta(minutes=5), time
