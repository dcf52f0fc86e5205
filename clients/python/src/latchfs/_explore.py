"""Finds races: runs a test under every order of its clients' requests that matters.

Here, the loop of runs, and what is told of a failure. Which order comes next is decided in the
server; how the clients of a run are started, in `_clients`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Optional, Union

from ._api import Api, given, name
from ._clients import LOOK_SECONDS, RUN_SECONDS, Run, Stuck
from ._controls import Seconds, milliseconds
from ._errors import LatchfsError

STATE = "latchfs-explore"
"""The saved state that each run starts from: what the server has when the search begins."""

CLIENTS = ("A", "B")
"""The clients that a test has, until its first run shows others."""

PATIENCE_MS = 600_000
"""How long a search waits for the next call of its test, which may compute between two of them."""


@dataclass
class Failure:
    """An order in which the test failed."""

    token: str
    """Replays the order."""
    order: list[dict[str, Any]]
    """Its steps: `client`, `operation`, `object`, `choice`, `status`."""
    error: BaseException
    """What the test raised in it."""
    run: int
    """The run that failed first."""

    def table(self) -> str:
        """The order for people, a line for each step."""
        columns = ("step", "client", "operation", "object", "choice", "status")
        steps = [{"step": number, **step} for number, step in enumerate(self.order, 1)]
        rows = [columns, *([str(step.get(one) or "") for one in columns] for step in steps)]
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


@dataclass
class Explored:
    """What a search found."""

    runs: int
    """How often the test ran."""
    complete: bool
    """Whether every order that matters was run."""
    why: list[str]
    """Why the search is not complete, and what else it noted."""
    failure: Optional[Failure]
    """The order in which the test failed, made short."""

    def __str__(self) -> str:
        orders = f"{self.runs} order{'' if self.runs == 1 else 's'}"
        if self.failure is not None:
            token, run = self.failure.token, self.failure.run
            text = f"failed in the order {token}, found in run {run} of {self.runs}"
        else:
            text = f"passed in {orders}, {'which are all' if self.complete else 'not complete'}"
        return "; ".join([text, *self.why])


class ExploreError(LatchfsError):
    """The search cannot be made: the test does not fit it, or the token does not fit the test."""


class OtherClients(BaseException):
    """The clients of the test are not those of the search, which begins again with these."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = names


class Search(Run):
    """A search at the server, and the run of the moment."""

    def __init__(self, api: Api, clients: Sequence[str], options: Mapping[str, Any]) -> None:
        # A client of an earlier test has the name: the search makes its own keys.
        for known in api.get("/clients")["clients"]:
            if known["name"] in clients:
                api.delete(f"/clients/{name(known['name'])}")
        self._is_here = _is_here(api)
        wanted = {"clients": list(clients), "state": STATE, "idle_ms": PATIENCE_MS, **options}
        begun = api.post("/explorations", wanted | ({"owner": os.getpid()} if self._is_here else {}))
        self._api = api
        self._names = set(clients)
        self._path = f"/explorations/{begun['exploration']}"
        self._strings: Mapping[str, str] = begun["clients"]
        self._run = ""
        self._clients_ran = False

    def next(self) -> bool:
        """Begins the next run; False if none is needed."""
        begun = self._api.post(f"{self._path}/runs")
        self._run, self._clients_ran = f"{self._path}/runs/{begun.get('run')}", False
        return not begun["done"]

    def begin(self, names: Sequence[str]) -> Mapping[str, str]:
        """The clients of the run begin."""
        if self._clients_ran:
            raise ExploreError("a test that is explored has all its clients in one `with` block")
        if set(names) != self._names:
            raise OtherClients(names)
        self._clients_ran = True
        return self._strings

    def tell(self, client: str, state: Mapping[str, Any]) -> None:
        """Tells the server that a client starts, and waits until it may; or that it has finished."""
        # Numbers of threads say nothing to a server on another machine, or in a container.
        told = {key: value for key, value in state.items() if key != "threads" or self._is_here}
        self._wait(f"clients/{name(client)}", told)

    def step(self, client: str, step: str, objects: Sequence[str], writes: bool) -> None:
        """Waits until it is the turn of a step that the server does not see."""
        wanted = {"client": client, "name": step, "objects": list(objects), "writes": writes}
        self._wait("steps", wanted)

    def _wait(self, call: str, body: Mapping[str, Any]) -> None:
        self._api.call("POST", f"{self._run}/{call}", body=body, timeout=2 * RUN_SECONDS)

    def look(self) -> bool:
        """Waits a while for the run to end; whether it has."""
        answer = self._api.get(self._run, {"wait_ms": milliseconds(LOOK_SECONDS)})
        if answer["state"] == "mismatch":
            raise ExploreError("; ".join(answer["notes"]))
        if answer["state"] not in ("running", "over"):
            raise Stuck("; ".join(answer["notes"]))
        return bool(answer["state"] == "over")

    def end(self, error: Optional[BaseException]) -> None:
        """Ends the run with what the test raised."""
        if error is None and not self._clients_ran:
            raise ExploreError(
                "nothing is explored: run the clients in `with latchfs.clients() as c:`"
            )
        verdict = given(failed=error is not None, signature=signature(error))
        self._api.post(f"{self._run}/end", verdict)

    def close(self, error: Optional[BaseException]) -> Explored:
        """Ends the search; returns what it found. `error` is what the last failing run raised."""
        found = self._api.delete(self._path)
        told = found.get("failure")
        failure = told and error and Failure(told["token"], told["order"], error, told["run"])
        # A search that has found an order ends, and needs no other reason.
        why = [*([] if told else found["incomplete"]), *found["notes"]]
        return Explored(found["runs"], found["complete"], why, failure or None)


def _is_here(api: Api) -> bool:
    """Whether the server sees the threads of this process under their numbers."""
    try:
        return Path(f"/proc/{api.get('/status')['pid']}/comm").read_text().startswith("latchfs")
    except OSError:
        return False


def signature(error: Optional[BaseException]) -> Optional[str]:
    """The kind of an error, without texts that differ from run to run."""
    if error is None:
        return None
    return " ".join(filter(None, [type(error).__name__, str(getattr(error, "error_code", None) or "")]))


def search_options(
    budget: Optional[int],
    drops: Optional[int],
    advance: Union[Seconds, Sequence[Seconds]],
    seed: Optional[int],
    replay: Optional[str],
) -> dict[str, Any]:
    """The options of a search, as the server has them."""
    times = [advance] if isinstance(advance, (int, float, timedelta)) else advance
    advance_ms = [milliseconds(time) for time in times]
    return given(budget=budget, drops=drops, advance_ms=advance_ms, seed=seed, replay=replay)


def explore(
    api: Api,
    body: Callable[[], object],
    enter: Callable[[Optional[Search]], None],
    options: Mapping[str, Any],
) -> Explored:
    """Runs `body` in one order after the other; `enter` is told of the search that it is part of."""
    names: Sequence[str] = CLIENTS
    api.put(f"/states/{STATE}")
    try:
        while True:
            search = Search(api, names, options)
            error: Optional[BaseException] = None
            enter(search)
            try:
                error = _runs(search, body)
            except OtherClients as others:
                names = others.names
                continue
            finally:
                enter(None)
                found = search.close(error)
            return found
    finally:
        api.delete(f"/states/{STATE}")


def _runs(search: Search, body: Callable[[], object]) -> Optional[BaseException]:
    """All runs of a search; returns what the last failing one raised."""
    last: Optional[BaseException] = None
    while search.next():
        error: Optional[BaseException] = None
        try:
            body()
        except ExploreError:
            raise
        except BaseException as raised:
            # What `pytest.fail` raises is no Exception.
            if not isinstance(raised, Exception) and type(raised).__name__ != "Failed":
                raise
            error = raised
        search.end(error)
        last = error or last
    return last
