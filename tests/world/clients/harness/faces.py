"""The SDK's two faces, sync and aio, behind one way of calling them, and a note of every call.

A round is written once, as aio has it: what sends a request is awaited, what is paged is read with
`async for`. On the sync face the same words call the sync classes. Each call of a round is noted
with what it came to: `good`, or the code of the refusal. Calls that the SDK makes of its own
methods are not: a method is covered only where a round names it.
"""

import contextlib
import functools
import inspect
import sys
from collections import defaultdict

from azure.core.async_paging import AsyncItemPaged
from azure.core.exceptions import HttpResponseError
from azure.core.paging import ItemPaged

GOOD = "good"
# What `chunks` of a download gives.
CHUNKS = ("_ChunkIterator", "_AsyncChunkIterator")


def code_of(error):
    """The code of a refusal. Some methods raise it as it came, without the attribute."""
    told = getattr(error, "error_code", None)
    if told is None and error.response is not None:
        told = error.response.headers.get("x-ms-error-code")
    return getattr(told, "value", told)


class Library:
    """An SDK: its classes on both faces, by name, and the functions that sign.

    The first of `clients` is that of the service. `hidden`: public classes that no module exports,
    each by name with its sync and its aio form. `table`: the rows of all classes.
    """

    def __init__(self, sync, aio, clients, signers, table, hidden=None):
        self.sync, self.aio = sync, aio
        self.clients, self.signers, self.table = clients, signers, table
        self.hidden = hidden or {}

    def classes(self, face):
        """The classes of a face, by name."""
        at = ("sync", "aio").index(face)
        exported = {name: getattr((self.sync, self.aio)[at], name) for name in self.clients}
        return exported | {name: forms[at] for name, forms in self.hidden.items()}


def kind(owner, name):
    """How a public name of an aio class is used."""
    found = inspect.getattr_static(owner, name)
    if isinstance(found, property):
        return "property"
    if isinstance(found, classmethod):
        return "builder"
    return "awaited" if inspect.iscoroutinefunction(found) else "plain"


def public(owner):
    """The public names of a class."""
    return {name for name in dir(owner) if not name.startswith("_")}


class Face:
    """One face of the SDK. Its attributes are the clients' classes and the SAS generators."""

    def __init__(self, library, name):
        self.library, self.name = library, name
        self.classes, self.twins = library.classes(name), library.classes("aio")
        self.noted = defaultdict(set)

    def __getattr__(self, name):
        if name in self.library.signers:
            return self.plain("", name, getattr(self.library.sync, name))
        if name in self.library.clients:
            return Builder(self, name)
        raise AttributeError(name)

    def note(self, owner, name, outcome):
        self.noted[owner, name].add(str(outcome))

    def excuse(self, owner, name, why):
        """A method that cannot succeed on this machine."""
        print(f"SKIPPED {owner}.{name}: {why}", file=sys.stderr)
        self.note(owner, name, GOOD)

    def wrapped(self, value, called):
        """What a call gave, so that the calls it leads to are noted too."""
        name = type(value).__name__
        if type(value) is self.classes.get(name):
            return Seen(self, name, value)
        if isinstance(value, (ItemPaged, AsyncItemPaged)) or name in CHUNKS:
            return Sequence(self, called, value)
        return value

    def plain(self, owner, name, function):
        """A method that is not awaited: it sends nothing before what it gives is read."""

        @functools.wraps(function)
        def call(*args, **kwargs):
            value = self.wrapped(function(*bare(args), **bare(kwargs)), (owner, name))
            if not isinstance(value, Sequence):
                self.note(owner, name, GOOD)
            return value

        return call

    def awaited(self, owner, name, function):
        """A method that sends requests."""

        @functools.wraps(function)
        async def call(*args, **kwargs):
            async with noting(self, (owner, name)):
                value = function(*bare(args), **bare(kwargs))
                if inspect.isawaitable(value):
                    value = await value
            return self.wrapped(value, (owner, name))

        return call


@contextlib.asynccontextmanager
async def noting(face, called):
    """Notes what the requests within come to."""
    try:
        yield
    except HttpResponseError as error:
        face.note(*called, code_of(error))
        raise
    except ValueError:
        face.note(*called, "ValueError")
        raise
    face.note(*called, GOOD)


class Builder:
    """A class of the SDK."""

    def __init__(self, face, name):
        self._face, self._name = face, name

    def __call__(self, *args, **kwargs):
        made = self._face.classes[self._name](*bare(args), **bare(kwargs))
        return Seen(self._face, self._name, made)

    def __getattr__(self, name):
        function = getattr(self._face.classes[self._name], name)
        return self._face.plain(self._name, name, function)


class Seen:
    """An object of the SDK."""

    def __init__(self, face, owner, inner):
        self._face, self._owner, self.inner = face, owner, inner

    def __getattr__(self, name):
        value = getattr(self.inner, name)
        # Both faces are called as aio is: which of their names are awaited is read off there.
        twin = self._face.twins[self._owner]
        if name not in public(twin):
            return value
        used = kind(twin, name)
        if used == "property" or not callable(value):
            self._face.note(self._owner, name, GOOD)
            return value
        wrap = self._face.awaited if used == "awaited" else self._face.plain
        return wrap(self._owner, name, value)


class Sequence:
    """Items that come page by page, or chunk by chunk: noted when they were read."""

    def __init__(self, face, called, inner):
        self._face, self._called, self._inner = face, called, inner

    def by_page(self, token=None):
        return Sequence(self._face, self._called, self._inner.by_page(token))

    @property
    def token(self):
        """Where the next page begins, of what `by_page` gave."""
        return self._inner.continuation_token

    async def __aiter__(self):
        async with noting(self._face, self._called):
            async for item in each(self._inner):
                yield item

    async def pages(self, token=None):
        """All pages, each with the token after it."""
        pages = self.by_page(token)
        return [(await listed(page), pages.token) async for page in pages]

    async def page(self):
        """The next page of what `by_page` gave, read."""
        async with noting(self._face, self._called):
            return await listed(await anext(each(self._inner)))


async def each(items):
    """The items, whichever way they come."""
    if hasattr(items, "__anext__") or hasattr(items, "__aiter__"):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def listed(items):
    """All items."""
    return [item async for item in each(items)]


def bare(value):
    """Arguments as the SDK knows them."""
    if isinstance(value, Seen):
        return value.inner
    if isinstance(value, tuple):
        return tuple(bare(item) for item in value)
    if type(value) is dict:
        return {name: bare(item) for name, item in value.items()}
    return value
