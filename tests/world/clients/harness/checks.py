"""What rounds assert with: refusals by status, code and class, and times."""

import datetime

import isodate
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from faces import code_of

HOUR = datetime.timedelta(hours=1)
# How long a condition may take to come true.
PATIENCE = datetime.timedelta(seconds=20)
# The class of an error, as the SDKs choose it: by the code, or else by the status.
CLASSES = {
    "AuthenticationFailed": ClientAuthenticationError,
    "CannotVerifyCopySource": ResourceNotFoundError,
    "ConditionNotMet": ResourceModifiedError,
    "UpdateConditionNotSatisfied": ResourceModifiedError,
    401: ClientAuthenticationError,
    404: ResourceNotFoundError,
    409: ResourceExistsError,
}


async def refused(status, code, call, kind=None):
    """Awaits `call`, which must be refused with that status and code; returns the error.

    `kind` is the class of the error, if it is not the one of `CLASSES`.
    """
    kind = kind or CLASSES.get(code) or CLASSES.get(status, HttpResponseError)
    try:
        given = await call
    except HttpResponseError as error:
        met, wanted = (error.status_code, code_of(error), type(error)), (status, code, kind)
        assert met == wanted, f"{met}, not {wanted}: {error}"
        return error
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
