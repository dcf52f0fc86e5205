"""What rounds assert with: refusals by code and class, and times."""
import datetime

from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)

# The status of each code that a round meets. The SDK goes by status, and for a few by code.
STATUSES = {
    "AuthenticationFailed": 403,
    "AuthorizationPermissionMismatch": 403,
    "AuthorizationProtocolMismatch": 403,
    "AuthorizationResourceTypeMismatch": 403,
    "AuthorizationServiceMismatch": 403,
    "AuthorizationSourceIPMismatch": 403,
    "InvalidMetadata": 400,
    "InvalidQueryParameterValue": 400,
    "InvalidResourceName": 400,
    "InvalidXmlDocument": 400,
    "MessageNotFound": 404,
    "MetadataTooLarge": 400,
    "OutOfRangeInput": 400,
    "OutOfRangeQueryParameterValue": 400,
    "PopReceiptMismatch": 400,
    "QueueAlreadyExists": 409,
    "QueueNotFound": 404,
    "RequestBodyTooLarge": 413,
}
BY_STATUS = {404: ResourceNotFoundError, 409: ResourceExistsError}
BY_CODE = {"AuthenticationFailed": ClientAuthenticationError}


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


async def existed(call):
    """Awaits `call`, which makes a queue that is there: 204, which the SDK takes for a refusal."""
    try:
        given = await call
    except ResourceExistsError as error:
        assert error.status_code == 204, error
        return
    raise AssertionError(f"the queue was there, and it gave {given!r}")


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def recent(time):
    """Asserts that a time is the time of this run."""
    assert abs(now() - time) < datetime.timedelta(minutes=5), time
