"""Rows of a table of methods: how each public method of an SDK is used, and its refusals.

`differences` compares a table with the SDK as installed and with what was called: a method that is
new, gone, never called, or never refused as its row says, is named. So a new version of the SDK
shows up as rows that are missing.
"""

import dataclasses
import inspect

from faces import GOOD, kind, public


@dataclasses.dataclass(frozen=True)
class Row:
    """A method: `kind` as aio has it, the codes to be met, whether it can succeed here."""

    kind: str
    codes: tuple = ()
    succeeds: bool = True


def sends(*codes):
    """Awaited; sends a request, which is refused with each of these codes in turn."""
    return Row("awaited", codes)


def pages(*codes):
    """Not awaited; sends requests when it is read."""
    return Row("plain", codes)


def never(*codes):
    """Awaited; refused here, always with one of these codes."""
    return Row("awaited", codes, succeeds=False)


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


def differences(face):
    """What the table, the SDK, and the calls of `face` do not agree on."""
    yield from of_names(face.library)
    for owner, rows in face.library.table.items():
        yield from of_class(face, owner, rows)
        for name, row in rows.items():
            noted = face.noted.get((owner, name), set())
            yield from (f"{owner}.{name} {what}" for what in of_calls(row, noted))
    for name in face.library.signers:
        if ("", name) not in face.noted:
            yield f"{name} was never called"


def of_names(library):
    """Whole clients and generators that are new or gone."""
    exported = {name for name in library.sync.__all__ if name.endswith("Client")}
    twins = {name for name in library.aio.__all__ if name.endswith("Client")}
    for found in (exported, twins):
        yield from (f"the client {name} is new or gone" for name in found ^ set(library.clients))
    makers = {name for name in library.sync.__all__ if name.startswith("generate_")}
    yield from (f"{name} is new or gone" for name in makers ^ set(library.signers))


def of_class(face, owner, rows):
    """Methods that are new, gone, or used in another way."""
    own, twin = face.classes[owner], face.twins[owner]
    for name in sorted(public(own) | set(rows)):
        if name not in rows:
            yield f"{owner}.{name} is new: it needs a round and a row"
        elif name not in public(own):
            yield f"{owner}.{name} is gone"
        elif rows[name].kind != kind(twin, name):
            yield f"{owner}.{name} is {kind(twin, name)} now, not {rows[name].kind}"
        elif face.name == "sync" and inspect.iscoroutinefunction(getattr(own, name)):
            yield f"{owner}.{name} is a coroutine in the sync face"


def of_calls(row, noted):
    """What a row promises and the rounds did not meet."""
    wanted = set(row.codes) | ({GOOD} if row.succeeds else set())
    for outcome in sorted(wanted - noted):
        yield "was never called with success" if outcome == GOOD else f"never met {outcome}"
    if not row.succeeds:
        yield from (f"came to {outcome}, which its row excludes" for outcome in noted - wanted)
