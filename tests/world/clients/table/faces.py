"""The SDK's two faces, sync and aio, behind one way of calling them, and a note of every call.

A round is written once, as aio has it. Each call is noted with its outcome: `good`, or the code of
the refusal. `differences` compares the notes with the table of methods and with the SDK as it is
installed: a method that is new, gone, never called, or never refused as its row says, is named.
"""
import contextlib
import inspect
from collections import defaultdict

from azure.core.exceptions import HttpResponseError
from azure.data import tables
from azure.data.tables import aio

CLIENTS = ("TableServiceClient", "TableClient")
GOOD = "good"
LIBRARIES = {"sync": tables, "aio": aio}


def public(owner):
    """The public names of a class."""
    return {name for name in dir(owner) if not name.startswith("_")}


def code_of(error):
    """The code of a refusal. Some methods raise it as it came, without the attribute."""
    found = getattr(error, "error_code", None) or error.response.headers.get("x-ms-error-code")
    return getattr(found, "value", found)


class Face:
    """One face of the SDK. Its attributes are the clients' classes, wrapped."""

    def __init__(self, name):
        self.name = name
        self.noted = defaultdict(set)

    def __getattr__(self, name):
        if name not in CLIENTS:
            raise AttributeError(name)
        return Builder(self, name)

    def note(self, owner, name, outcome):
        self.noted[owner, name].add(str(getattr(outcome, "value", outcome)))

    @contextlib.asynccontextmanager
    async def noting(self, owner, name):
        """Notes the outcome of the requests within."""
        try:
            yield
        except HttpResponseError as error:
            self.note(owner, name, code_of(error))
            raise
        except ValueError:
            self.note(owner, name, "ValueError")
            raise
        self.note(owner, name, GOOD)


class Builder:
    """A class of the SDK."""

    def __init__(self, face, name):
        self._face, self._name = face, name
        self._class = getattr(LIBRARIES[face.name], name)

    def __call__(self, *args, **kwargs):
        return Seen(self._face, self._name, self._class(*args, **kwargs))

    def __getattr__(self, name):
        def build(*args, **kwargs):
            self._face.note(self._name, name, GOOD)
            return Seen(self._face, self._name, getattr(self._class, name)(*args, **kwargs))

        return build


class Seen:
    """A client of the SDK. All its methods are awaited but those that page or make a client."""

    def __init__(self, face, owner, inner):
        self._face, self._owner, self.inner = face, owner, inner

    def __getattr__(self, name):
        value = getattr(self.inner, name)
        face, owner = self._face, self._owner
        if not callable(value):
            face.note(owner, name, GOOD)
            return value
        if name == "get_table_client":
            face.note(owner, name, GOOD)
            return lambda *args, **kwargs: Seen(face, "TableClient", value(*args, **kwargs))
        if name in ("list_tables", "query_tables", "list_entities", "query_entities"):
            return lambda *args, **kwargs: Pages(face, owner, name, value(*args, **kwargs))

        async def call(*args, **kwargs):
            async with face.noting(owner, name):
                answer = value(*args, **kwargs)
                if inspect.isawaitable(answer):
                    answer = await answer
            made = type(answer).__name__
            return Seen(face, made, answer) if made in CLIENTS else answer

        return call


class Pages:
    """Items that come page by page."""

    def __init__(self, face, owner, name, inner):
        self._face, self._owner, self._name, self._inner = face, owner, name, inner

    async def all(self):
        """All items."""
        async with self._face.noting(self._owner, self._name):
            return [item async for item in each(self._inner)]

    async def pages(self, token=None):
        """All pages, each with the token after it."""
        async with self._face.noting(self._owner, self._name):
            by_page = self._inner.by_page(token)
            found = []
            async for page in each(by_page):
                items = [item async for item in each(page)]
                found.append((items, by_page.continuation_token))
            return found


async def each(items):
    """The items, whichever way they come."""
    if hasattr(items, "__aiter__"):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


# Every public method, with the refusals that a round must meet.
NOTHING = ()
METHODS = {
    "TableServiceClient": {
        "api_version": NOTHING,
        "close": NOTHING,
        "create_table": (
            "TableAlreadyExists", "ValueError", "AuthenticationFailed",
            "AuthorizationResourceTypeMismatch",
        ),
        "create_table_if_not_exists": ("ValueError",),
        "delete_table": ("ValueError",),
        "from_connection_string": NOTHING,
        "get_service_properties": ("AuthorizationPermissionMismatch",),
        "get_service_stats": ("AuthenticationFailed",),
        "get_table_client": NOTHING,
        "list_tables": ("AuthenticationFailed",),
        "query_tables": ("InvalidInput",),
        "set_service_properties": ("InvalidXmlDocument",),
        "url": NOTHING,
    },
    "TableClient": {
        "api_version": NOTHING,
        "close": NOTHING,
        "create_entity": (
            "EntityAlreadyExists", "TableNotFound", "PropertyNameInvalid", "TooManyProperties",
            "PropertyValueTooLarge", "EntityTooLarge", "OutOfRangeInput", "KeyValueTooLarge",
            "PropertyNameTooLong", "AuthorizationPermissionMismatch", "ValueError",
            "AuthorizationFailure",
        ),
        "create_table": ("TableAlreadyExists", "ValueError"),
        "delete_entity": ("UpdateConditionNotSatisfied", "AuthorizationPermissionMismatch"),
        "delete_table": ("ValueError",),
        "from_connection_string": NOTHING,
        "from_table_url": NOTHING,
        "get_entity": (
            "ResourceNotFound", "TableNotFound", "AuthenticationFailed", "AuthorizationFailure",
        ),
        "get_table_access_policy": ("TableNotFound",),
        "list_entities": ("TableNotFound", "AuthorizationPermissionMismatch"),
        "query_entities": ("InvalidInput",),
        "set_table_access_policy": ("ValueError", "TableNotFound"),
        "submit_transaction": (
            "EntityAlreadyExists", "UpdateConditionNotSatisfied", "ResourceNotFound",
            "InvalidInput", "InvalidDuplicateRow", "TableNotFound", "RequestBodyTooLarge",
        ),
        "update_entity": (
            "UpdateConditionNotSatisfied", "ResourceNotFound", "AuthorizationPermissionMismatch",
        ),
        "upsert_entity": ("TableNotFound", "AuthorizationPermissionMismatch"),
        "url": NOTHING,
    },
}


def differences(face):
    """What the table of methods, the SDK and the rounds do not agree on."""
    found = []
    for owner, rows in METHODS.items():
        have = public(getattr(LIBRARIES[face.name], owner))
        found += [f"{owner}.{name} is not in the table" for name in sorted(have - set(rows))]
        found += [f"{owner}.{name} is not in the SDK" for name in sorted(set(rows) - have)]
        for name, codes in rows.items():
            met = face.noted[owner, name]
            missing = {GOOD, *codes} - met
            if missing:
                found.append(f"{owner}.{name} did not meet {sorted(missing)}, only {sorted(met)}")
    return found
