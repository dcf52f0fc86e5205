"""The clients of a test: functions and coroutines that run at the same time.

Here, their threads, and what the server is told of them; which of their requests goes first is
decided in the server.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Optional

from ._errors import LatchfsError

RUN_SECONDS = 120.0
"""How long the clients of one run may take."""

LOOK_SECONDS = 0.5
"""How long one look at a run waits for its end."""


class Stuck(LatchfsError):
    """The clients wait for each other, or one of them does not end."""


class Run:
    """A run of clients in which nothing chooses the order."""

    def __init__(self, connection_string: Callable[[str], str]) -> None:
        self._connection_string = connection_string

    def begin(self, names: Sequence[str]) -> Mapping[str, str]:
        """Returns the connection strings of the clients; raises if these cannot take part."""
        return {client: self._connection_string(client) for client in names}

    def tell(self, client: str, state: Mapping[str, Any]) -> None:
        """Takes note that a client starts, or has finished. Returns when it may go on."""

    def look(self) -> bool:
        """Waits a while for the run to end; whether it has. Raises if it does not go on."""
        return True


@dataclass
class Client:
    """A client and its work."""

    name: str
    work: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]
    result: Future[Any]


class Clients:
    """Clients that run at the same time: all start at the end of the `with` block, which waits.

    In a test that is explored, their requests are put into the order that is tried.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._clients: list[Client] = []
        self._foreign: list[int] = []

    def run(self, client: str, work: Callable[..., Any], *args: Any, **options: Any) -> Future[Any]:
        """Adds a client, which calls `work(connection_string, *args, **options)`.

        A function runs in a thread of its own, coroutines share one loop. The result is there after
        the `with` block; an exception is raised at the end of the block.
        """
        if any(other.name == client for other in self._clients):
            raise LatchfsError(f"clients: {client!r} is there twice: give each its own name")
        self._clients.append(Client(client, work, args, options, Future()))
        return self._clients[-1].result

    def __enter__(self) -> Clients:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if error is not None:
            return
        if not self._clients:
            raise LatchfsError("clients: none was added: call run(name, work) in the `with` block")
        strings = self._run.begin([client.name for client in self._clients])
        # Before there are threads of the clients.
        self._foreign = _foreign_threads()
        self._wait(self._start(strings))
        for client in self._clients:
            raised = client.result.exception()
            if raised is not None:
                raise raised

    def _start(self, strings: Mapping[str, str]) -> list[threading.Thread]:
        tasks = [one for one in self._clients if inspect.iscoroutinefunction(one.work)]
        threads = [
            # A client that does not end must not keep the process.
            threading.Thread(target=self._function, args=(one, strings[one.name]), daemon=True)
            for one in self._clients
            if one not in tasks
        ]
        if tasks:
            loop = self._coroutines(tasks, strings)
            threads.append(threading.Thread(target=lambda: asyncio.run(loop), daemon=True))
        for thread in threads:
            thread.start()
        return threads

    def _wait(self, threads: list[threading.Thread]) -> None:
        end = time.monotonic() + RUN_SECONDS
        while not self._run.look() and time.monotonic() < end:
            pass
        for thread in threads:
            thread.join(max(0, end - time.monotonic()))
        late = [one.name for one in self._clients if not one.result.done()]
        if late:
            raise Stuck(
                f"{' and '.join(late)} did not end within {RUN_SECONDS:g} s: the work of a client "
                "must end by itself, whatever the others do"
            )

    def _function(self, client: Client, connection_string: str) -> None:
        try:
            self._run.tell(client.name, self._started())
            client.result.set_result(client.work(connection_string, *client.args, **client.options))
        except BaseException as error:
            client.result.set_exception(error)
        finally:
            self._finished(client)

    def _finished(self, client: Client) -> None:
        # A run that was given up has ended without this client.
        with suppress(LatchfsError):
            self._run.tell(client.name, {"state": "finished"})

    async def _coroutines(self, clients: list[Client], strings: Mapping[str, str]) -> None:
        # The loop must not sleep in a call while another client could go on.
        with ThreadPoolExecutor(len(clients)) as calls:
            await asyncio.gather(
                *(self._coroutine(one, strings[one.name], calls) for one in clients)
            )

    async def _coroutine(self, client: Client, connection_string: str, calls: Executor) -> None:
        call = asyncio.get_running_loop().run_in_executor
        try:
            await call(calls, self._run.tell, client.name, self._started())
            work = client.work(connection_string, *client.args, **client.options)
            client.result.set_result(await work)
        except BaseException as error:
            client.result.set_exception(error)
        finally:
            await call(calls, self._finished, client)

    def _started(self) -> dict[str, Any]:
        """A client begins on this thread, and those of libraries may work for it."""
        return {"state": "started", "threads": [threading.get_native_id(), *self._foreign]}


def _foreign_threads() -> list[int]:
    """The threads of this process that libraries in other languages have made."""
    known = {thread.native_id for thread in threading.enumerate()}
    return [int(thread) for thread in os.listdir("/proc/self/task") if int(thread) not in known]
