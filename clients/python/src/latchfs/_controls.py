"""What a test controls: holds, gates, faults, the clock and saved states."""

from __future__ import annotations

import http.client
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import Any, Optional, Union

from ._api import Api, given, name
from ._errors import ApiError, LatchfsError

Seconds = Union[float, timedelta]


def milliseconds(time: Seconds) -> int:
    """Returns a time in milliseconds."""
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    if not isinstance(seconds, (int, float)):
        raise LatchfsError(f"{time!r}: expected seconds, or a timedelta")
    return round(seconds * 1000)


class Hold:
    """A file that the server holds open, as a program of another machine would.

    Ends with its `with` block, with `release()`, with a reset, or with the process that asked for it.
    """

    def __init__(self, api: Api, body: dict[str, Any], holds: set[Hold]) -> None:
        self._api = api
        self._connection: Optional[http.client.HTTPConnection]
        self._connection, granted = api.hold_stream("/holds", {**body, "while_connected": True})
        # A hold that the test keeps no variable for must not end with the garbage.
        self._holds = holds
        holds.add(self)
        self.handle: int = granted["handle"]
        """The number of the handle, as `latchfs handles` shows it."""
        self.account: str = granted["account"]
        """The account of the file."""
        self.share: str = granted["share"]
        """The share of the file."""
        self.path: str = granted["path"]
        """The path of the file, from the root of its share."""
        self.access: str = granted["access"]
        """What the open may do."""
        self.share_mode: str = granted["share_mode"]
        """What the open lets others do."""

    def release(self) -> bool:
        """Closes the handle. When this returns, the file is free.

        False if the handle had been closed before: by force, by a reset, or because its time was up.
        """
        if self._connection is None:
            return False
        try:
            answer = self._api.delete(f"/holds/{name(self.handle)}")
            return bool(answer["open"])
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Closes the connection, which ends the hold if nothing else has. Does not wait for it."""
        self._holds.discard(self)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __enter__(self) -> Hold:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        state = "released" if self._connection is None else "held"
        return f"<Hold {self.handle} of {self.share}:/{self.path.lstrip('/')}, {state}>"


class Gate:
    """A point where requests stop until the test lets them go.

    Removed with its `with` block, with `remove()`, or by a reset; requests that wait then go on.
    """

    def __init__(self, api: Api, body: dict[str, Any]) -> None:
        self._api = api
        self.id: int = api.post("/gates", body)["gate"]
        """The number of the gate."""

    def wait(self, count: int = 1, *, timeout: Seconds = 30.0) -> int:
        """Waits until `count` requests have stopped here; returns how many wait.

        Raises `WaitTimeout` if they have not within the time.
        """
        wait = milliseconds(timeout)
        answer = self._api.get(
            f"/gates/{self.id}/wait",
            {"count": count, "timeout_ms": wait},
            timeout=wait / 1000 + 30,
        )
        return int(answer["waiting"])

    def release(self, count: Optional[int] = None) -> int:
        """Lets the first `count` requests go, or all; returns how many went."""
        return int(self._api.post(f"/gates/{self.id}/release", given(count=count))["released"])

    def status(self) -> dict[str, Any]:
        """The row of `latchfs gate list --json`: the pattern, and who waits."""
        return dict(self._api.get(f"/gates/{self.id}"))

    def remove(self) -> None:
        """Removes the gate. A gate that is gone already is none of the caller's concern."""
        _remove(self._api, f"/gates/{self.id}")

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<Gate {self.id}>"


class Fault:
    """A fault that is injected into the requests that match.

    Removed with its `with` block, with `remove()`, or by a reset.
    """

    def __init__(self, api: Api, body: dict[str, Any]) -> None:
        self._api = api
        self.id: int = api.post("/faults", body)["fault"]
        """The number of the fault."""

    @property
    def met(self) -> int:
        """How many requests have met the fault; 0 if it was removed."""
        rows = self._api.get("/faults")["faults"]
        return next((int(row["met"]) for row in rows if row["id"] == self.id), 0)

    def remove(self) -> None:
        """Removes the fault. A fault that is gone already is none of the caller's concern."""
        _remove(self._api, f"/faults/{self.id}")

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<Fault {self.id}>"


def _remove(api: Api, path: str) -> None:
    try:
        api.delete(path)
    except ApiError as error:
        if error.status != 404:
            raise


class Clock:
    """The clock of the server: leases, hidden messages and the expiry of SAS follow it."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def now(self) -> datetime:
        """The time that the server's clock shows."""
        return _moment(self._api.get("/clock"))

    @property
    def frozen(self) -> bool:
        """Whether the clock stands."""
        return bool(self._api.get("/clock")["frozen"])

    def advance(self, time: Seconds) -> datetime:
        """Turns the clock forward by seconds or a timedelta; returns what it shows then."""
        return _moment(self._api.post("/clock", {"advance_ms": milliseconds(time)}))

    def set(self, moment: datetime) -> datetime:
        """Turns the clock forward to this moment; a time without a zone is UTC."""
        if not isinstance(moment, datetime):
            raise LatchfsError(f"clock.set: expected a datetime, not {moment!r}")
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        text = zoned.astimezone(timezone.utc).isoformat(timespec="milliseconds")
        return _moment(self._api.post("/clock", {"set": text.replace("+00:00", "Z")}))

    def freeze(self) -> datetime:
        """Stops the clock; returns what it shows."""
        return _moment(self._api.post("/clock", {"freeze": True}))

    def run(self) -> datetime:
        """Lets the clock go again; returns what it shows."""
        return _moment(self._api.post("/clock", {"run": True}))


def _moment(answer: Any) -> datetime:
    text = str(answer["now"]).rstrip("Z")
    seconds, _, fraction = text.partition(".")
    # Python reads six digits of a second; the service writes seven.
    micro = int((fraction + "000000")[:6])
    read = datetime.strptime(seconds, "%Y-%m-%dT%H:%M:%S")
    return read.replace(microsecond=micro, tzinfo=timezone.utc)


class States:
    """Saved states of all services: save once, restore before each test."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def save(self, state: str) -> None:
        """Saves everything that the server has under this name."""
        self._api.put(f"/states/{name(state)}")

    def restore(self, state: str) -> None:
        """Makes the server as it was when the state was saved."""
        self._api.post(f"/states/{name(state)}/restore")

    def delete(self, state: str) -> None:
        """Deletes a saved state."""
        self._api.delete(f"/states/{name(state)}")

    def list(self) -> list[str]:
        """The names of the saved states."""
        return [str(row["name"]) for row in self._api.get("/states")["states"]]
