"""What rounds assert with: refusals by code, status and class, content, and times."""

import datetime
import inspect

from azure.core.exceptions import HttpResponseError
from faces import code_of

HOUR = datetime.timedelta(hours=1)
A = "00000000-0000-4000-8000-00000000000a"
B = "00000000-0000-4000-8000-00000000000b"


async def refused(status, code, call):
    """Awaits `call`, which must be refused with that status and code; gives the error."""
    try:
        given = await call
    except HttpResponseError as error:
        met = (error.status_code, code_of(error))
        assert met == (status, code), f"{met}, not {(status, code)}: {error}"
        return error
    raise AssertionError(f"{code} expected, and it gave {given!r}")


async def whole(download):
    """The content of what `download_blob` gave."""
    content = download.readall()
    return await content if inspect.isawaitable(content) else content


async def text(blob, **more):
    """The content of a blob."""
    return await whole(await blob.download_blob(**more))


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def recent(time):
    """Asserts that a time is the time of this run."""
    assert abs(now() - time) < datetime.timedelta(minutes=5), time
