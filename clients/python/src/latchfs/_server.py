"""The server: started by this process, or one that runs already."""

from __future__ import annotations

import ssl
import tempfile
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Union

from ._api import Api, given
from ._clients import Clients, Run
from ._controls import Clock, Fault, Gate, Hold, Seconds, States, milliseconds
from ._errors import ApiError, LatchfsError, StartError
from ._explore import Explored, Search, explore, search_options
from ._process import Process
from ._story import line

if TYPE_CHECKING:
    from azure.storage.fileshare import ShareFileClient

SHARE = "share"
"""The share that a server has unless others are named."""


class Server:
    """A latchfs server for tests: File, Blob, Queue and Table, and what a test controls.

    `Server()` starts a server of its own, with its data in memory and on free ports of this
    machine; `close()`, the end of the `with` block, or the end of this process in any way stops it.
    `Server.connect(url)` uses a server that runs, such as one in a container, and leaves it running.

    Args:
        shares: The file shares that exist after the start and after each reset.
        mount: Mount the first share; `server.mount` is then the directory.
        args: Further options of `latchfs serve`, such as `["--oauth", "basic"]`.
        env: Variables for the server. Other variables that begin with LATCHFS_ are not passed on.
        timeout: How many seconds the start may take.
    """

    def __init__(
        self,
        *,
        shares: Sequence[str] = (SHARE,),
        mount: bool = False,
        args: Sequence[str] = (),
        env: Optional[Mapping[str, str]] = None,
        timeout: float = 60.0,
    ) -> None:
        if isinstance(shares, str) or not shares:
            raise LatchfsError("shares: expected a list of names, at least one")
        options = [option for share in shares for option in ("--share", share)]
        options += [*_data(args), *_ports(args), *_mount(mount), *args]
        process = Process(options, env, timeout)
        self._process: Optional[Process] = process
        self._ready = process.ready
        self.mount: Optional[Path] = None
        """Where the first share is mounted, if it is."""
        if mount:
            at = self._ready.get("mounts", {}).get(shares[0])
            if at is None:
                process.stop()
                why = "; ".join(self._ready.get("notes", ["`latchfs doctor` says why"]))
                raise StartError(f"the share cannot be mounted on this machine: {why}")
            self.mount = Path(at)
        admin = self._ready.get("admin")
        if admin is None:
            process.stop()
            raise StartError("the server has no admin address: leave --admin off away")
        self._use(Api(admin, token=self._ready.get("admin_token")), shares[0])

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        token: Optional[str] = None,
        account: Optional[str] = None,
        share: Optional[str] = None,
        context: Optional[ssl.SSLContext] = None,
    ) -> Server:
        """Uses the server whose admin address is `url`, such as http://127.0.0.1:10009.

        Args:
            url: The admin address.
            token: What the server asks for where it listens beyond this machine.
            account: The storage account, if it is not the first one.
            share: The share that is meant where none is named. Without it, `share` if the server
                has that one, else the first of the account by name.
            context: For https, whom to trust.
        """
        server = cls.__new__(cls)
        server._process = None
        server.mount = None
        api = Api(url, token=token, account=account, context=context)
        server._ready = dict(api.get("/connection"))
        server._use(api, share or _share(api, server.account))
        return server

    def _use(self, api: Api, share: str) -> None:
        self.api = api
        """Every call of the admin API, such as `server.api.get("/leases")`."""
        self.share = share
        """The share that is meant where none is named."""
        self._holds: set[Hold] = set()
        self._search: Optional[Search] = None
        self.clock = Clock(api)
        """The clock of the server."""
        self.state = States(api)
        """Saved states of all services."""

    # Where the server is.

    @property
    def connection_string(self) -> str:
        """What an SDK is configured with: account, key and the endpoints of all services."""
        return str(self._ready["connection_string"])

    def client(self, name: str) -> str:
        """The connection string of a client with this name, by which events and refusals name it.

        Two clients of one test are told apart by it whatever threads and connections they share.
        A second call with the name gives the same string.
        """
        for client in self.api.get("/clients")["clients"]:
            if client["name"] == name:
                return str(client["connection_string"])
        return str(self.api.post("/clients", {"name": name})["connection_string"])

    @property
    def endpoints(self) -> dict[str, str]:
        """The URL of each service: `file`, `blob`, `queue`, `table`."""
        return {str(service): str(url) for service, url in self._ready["endpoints"].items()}

    @property
    def account(self) -> str:
        """The name of the storage account."""
        return str(self._ready["account"])

    @property
    def key(self) -> str:
        """The key of the storage account, in base64."""
        return str(self._ready["key"])

    @property
    def admin(self) -> str:
        """The admin address: the page in a browser, the API below /api/v1."""
        return self.api.url

    @property
    def pid(self) -> Optional[int]:
        """The process of the server, if this process has started it."""
        return None if self._process is None else self._process.pid

    # Files.

    def file(self, path: str, *, share_name: Optional[str] = None) -> ShareFileClient:
        """Returns the SDK's client of a file. Needs azure-storage-file-share."""
        try:
            from azure.storage.fileshare import ShareFileClient
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "this needs the SDK: pip install azure-storage-file-share"
            ) from error
        share = share_name or self.share
        return ShareFileClient.from_connection_string(
            self.connection_string, share, path.strip("/")
        )

    def put(self, path: str, data: bytes, *, share_name: Optional[str] = None) -> ShareFileClient:
        """Stores a file, with the directories above it, and returns the SDK's client of it."""
        client = self.file(path, share_name=share_name)
        parents = path.strip("/").split("/")[:-1]
        if parents:
            self._make_directories(share_name or self.share, parents)
        client.upload_file(data)
        return client

    def _make_directories(self, share: str, names: list[str]) -> None:
        from azure.core.exceptions import ResourceExistsError
        from azure.storage.fileshare import ShareDirectoryClient

        for depth in range(1, len(names) + 1):
            above = ShareDirectoryClient.from_connection_string(
                self.connection_string, share, "/".join(names[:depth])
            )
            try:
                above.create_directory()
            except ResourceExistsError as error:
                # A parent that is a file is another matter.
                if getattr(error, "error_code", None) != "ResourceAlreadyExists":
                    raise

    # What a test controls.

    def hold(
        self,
        path: str,
        *,
        access: str = "r",
        share: str = "none",
        share_name: Optional[str] = None,
        disposition: str = "open",
        delete_on_close: bool = False,
        locks: Iterable[tuple[int, int]] = (),
        limit: Seconds = 600.0,
        client: Optional[str] = None,
    ) -> Hold:
        """Opens a file as a second client and holds it until the `with` block ends.

        Args:
            path: The file, from the root of its share.
            access: What the open may do: letters of `rwd`, or `none`.
            share: What it lets others do meanwhile (its share mode): letters of `rwd`, or `none`.
            share_name: The share; the first one without it.
            disposition: `open`, `create`, `open-if`, `overwrite`, `overwrite-if` or `supersede`.
            delete_on_close: Mark the file for deletion when the hold ends; needs access `d`.
            locks: Byte ranges to lock exclusively, each as (start, length).
            limit: When the hold ends by itself, at most an hour.
            client: Whose open it is; in a test that is explored, a step of that client.

        Raises:
            Refused: Somebody else is in the way; the error names the holder.
        """
        ranges = [{"start": start, "length": length} for start, length in locks]
        body = given(
            path=path,
            share=share_name or self.share,
            access=access,
            share_mode=share,
            disposition=disposition,
            delete_on_close=delete_on_close or None,
            for_ms=milliseconds(limit),
            locks=ranges or None,
        )
        return Hold(self.api.of_client(client) if client else self.api, body, self._holds)

    def gate(
        self,
        operation: Optional[str] = None,
        path: Optional[str] = None,
        *,
        service: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        at: str = "received",
        times: Optional[int] = None,
        limit: Seconds = 60.0,
    ) -> Gate:
        """Stops the requests that match until the test lets them go.

        Args:
            operation: As documented, such as `Put Blob`; `*` stands for any letters.
            path: Such as `container/blob`; `*` stands for any letters but a slash, `**` for any.
            service: `file`, `blob`, `queue` or `table`.
            headers: Patterns that the values of these headers fit.
            at: `received` (nothing was looked at) or `committed` (done, not answered).
            times: Stop only the next N requests; all without it.
            limit: When a waiting request is released without a call.
        """
        matching = _matching(operation, path, service, headers)
        body = given(**matching, at=at, times=times, limit_ms=milliseconds(limit))
        return Gate(self.api, body)

    def fault(
        self,
        operation: Optional[str] = None,
        path: Optional[str] = None,
        *,
        answer: Optional[tuple[int, str]] = None,
        delay: Optional[Seconds] = None,
        drop: Optional[str] = None,
        cut: Optional[int] = None,
        slow: Optional[int] = None,
        service: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        times: Optional[int] = None,
        probability: Optional[float] = None,
        seed: Optional[int] = None,
    ) -> Fault:
        """Has the requests that match fail, come late or lose their answer. Give one of:

        Args:
            answer: Status and error code, such as `(503, "ServerBusy")`; nothing is done.
            delay: The request is carried out after this time.
            drop: `before` closes the connection and nothing is done, `after` when it is done.
            cut: The answer's body ends after this many bytes.
            slow: The answer's body is sent at this many bytes a second.
            operation, path, service, headers: Which requests, as for `gate`.
            times: Apply the fault to the next N requests only; to all without it.
            probability: Probability that the fault applies, 0 to 1; `seed` makes it repeatable.
        """
        actions: list[Any] = []
        if answer is not None:
            if not isinstance(answer, (tuple, list)) or len(answer) != 2:
                raise LatchfsError(
                    f"answer={answer!r}: expected a status and an error code, as in "
                    "(503, 'ServerBusy')"
                )
            actions.append({"answer": {"status": answer[0], "code": answer[1]}})
        if delay is not None:
            actions.append({"delay_ms": milliseconds(delay)})
        if drop is not None:
            if drop not in ("before", "after"):
                raise LatchfsError(f"drop={drop!r}: expected 'before' or 'after'")
            actions.append(f"drop_{drop}")
        if cut is not None:
            actions.append({"cut_bytes": cut})
        if slow is not None:
            actions.append({"bytes_per_second": slow})
        if len(actions) != 1:
            raise LatchfsError("a fault is one of answer, delay, drop, cut and slow")
        matching = _matching(operation, path, service, headers)
        body = given(
            **matching, action=actions[0], times=times, probability=probability, seed=seed
        )
        return Fault(self.api, body)

    def reset(self) -> None:
        """Makes the server as it was at its start: no data, holds, gates, faults; the system's time.

        The shares that were named at the start exist again, empty. Saved states stay.
        """
        self.api.post("/reset")
        self._let_holds_go()

    def _let_holds_go(self) -> None:
        for hold in list(self._holds):
            hold.let_go()

    # Finding races.

    def clients(self) -> Clients:
        """Clients that run at the same time, each with its name and connection string.

        `with server.clients() as c: c.run("A", work, *args)` calls `work(connection_string, *args)`
        in a thread; coroutine functions share a loop. All start at the end of the `with` block.
        """
        return Clients(self._search or Run(self.client))

    def explore(
        self,
        test: Callable[[], object],
        *,
        budget: Optional[int] = None,
        drops: Optional[int] = None,
        advance: Union[Seconds, Sequence[Seconds]] = (),
        seed: Optional[int] = None,
        replay: Optional[str] = None,
    ) -> Explored:
        """Calls `test` once for each order of its clients' requests that matters, until it raises.

        Each call finds the data that the server has now. `test` sets up what it needs, runs its
        clients in `with server.clients() as c:`, and checks the outcome; only what the clients ask
        is put into an order.

        Args:
            test: The function.
            budget: The most runs; 200 without it.
            drops: The most answers that are lost in a run; none without it.
            advance: Times by which the clock may be advanced, each once in a run.
            seed: The seed of the random runs at the end of the budget.
            replay: A token: that order alone is run.
        """

        def enter(search: Optional[Search]) -> None:
            self._search = search

        return explore(self.api, test, enter, search_options(budget, drops, advance, seed, replay))

    def step(
        self, client: str, step: str, *objects: str, writes: bool = True
    ) -> None:
        """Waits for its turn, where a client does something that the server does not see by itself.

        Such as a rename on a mount: `server.step("A", "rename", "file:share/a.txt")` comes before it.
        Without objects it concerns all. Outside an explored test it does nothing.
        """
        if self._search is not None:
            self._search.step(client, step, objects, writes)

    # What happened.

    def why(self, target: str) -> dict[str, Any]:
        """Explains what stands in the way of a file or an object, as `latchfs why --json` does.

        `target` is a path in the first share, or `file:SHARE/PATH`, `blob:CONTAINER/NAME`,
        `queue:NAME[/ID]`, `table:TABLE/PARTITION/ROW`.
        """
        named = target.split(":", 1)[0] in ("file", "blob", "queue", "table")
        target = target if named else f"file:{self.share}/{target.strip('/')}"
        try:
            return dict(self.api.get("/why", {"object": target}))
        except ApiError as error:
            if error.status != 404 or target in str(error):
                raise
            raise ApiError(error.status, error.kind, f"{target}: {error}") from None

    def events(
        self,
        *,
        after: Optional[int] = None,
        wait: Optional[Seconds] = None,
        kind: Optional[str] = None,
        service: Optional[str] = None,
    ) -> list[dict[str, Any]]:
        """What has happened at the server, oldest first: requests, refusals, holds, gates.

        Args:
            after: Only events with a greater `seq`.
            wait: How long to wait for the first one.
            kind: Only events of these kinds, such as `refused` or `request,fault`.
            service: Only those of `file`, `blob`, `queue` or `table`.
        """
        found: list[dict[str, Any]] = []
        wait_ms = None if wait is None else milliseconds(wait)
        while True:
            query = given(after=after, wait_ms=wait_ms, kind=kind, service=service)
            page = self.api.get("/events", query, timeout=60.0 + (wait_ms or 0) / 1000)
            found.extend(page["events"])
            # A page is bounded; the next one is there already.
            if page["last"] >= page["newest"]:
                return found
            after, wait_ms = page["last"], None

    def mark(self, test: str) -> int:
        """Sets a mark: a test begins. Its events are those after the number that is returned."""
        return int(self.api.post("/marks", {"test": test})["mark"])

    def story(self, mark: int, *, last: int = 20) -> list[str]:
        """The last requests since a mark in order, a line each: who, what, and what came of it."""
        return [line(event) for event in self.events(after=mark, kind="request")[-last:]]

    def report(
        self, *, since: Optional[str] = None, level: Optional[str] = None
    ) -> dict[str, Any]:
        """What went wrong between clients, or was never tried, as `latchfs report --json` has it.

        Args:
            since: The mark that it begins at, such as the name of a test.
            level: Only findings of this level and above: `error`, `warn`, `hint`.
        """
        return dict(self.api.get("/report", given(since=since, level=level)))

    def handles(self, path: str = "", *, share_name: Optional[str] = None) -> list[dict[str, Any]]:
        """The open handles of a file, or of all files below a directory."""
        query = {"share": share_name or self.share, "path": path, "recursive": "true"}
        return list(self.api.get("/handles", query)["handles"])

    def close(self) -> None:
        """Stops a server that was started here, and waits for its end. A second call does nothing.

        Holds of this object end in any case.
        """
        self._let_holds_go()
        if self._process is not None:
            self._process.stop()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<latchfs.Server {self.admin}>"


def _share(api: Api, account: str) -> str:
    """The share that is meant where the caller names none."""
    rows = api.get("/status")["shares"]
    names = sorted(str(row["name"]) for row in rows if row["account"] == account)
    return SHARE if SHARE in names or not names else names[0]


def _matching(
    operation: Optional[str],
    path: Optional[str],
    service: Optional[str],
    headers: Optional[Mapping[str, str]],
) -> dict[str, Any]:
    return given(
        operation=operation, path=path, service=service, headers=dict(headers) if headers else None
    )


def _data(args: Sequence[str]) -> list[str]:
    named = any(option in ("--data", "--in-memory") or option.startswith("--data=") for option in args)
    return [] if named else ["--in-memory"]


def _ports(args: Sequence[str]) -> list[str]:
    """A free port for the File service, unless it was named: the other services then take free ones."""
    names = ("--file", "--listen", "--no-rest")
    named = any(option.split("=", 1)[0] in names for option in args)
    return [] if named else ["--file", "127.0.0.1:0"]


def _mount(mount: bool) -> list[str]:
    if not mount:
        return ["--no-mount"]
    # The server makes the directory and removes it, also when this process is killed.
    return ["--mount-dir", str(Path(tempfile.gettempdir()) / f"latchfs-{uuid.uuid4().hex[:12]}")]
