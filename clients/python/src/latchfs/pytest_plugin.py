"""Fixtures for pytest: `latchfs`, an empty server for each test.

The server is started once in each process (each worker of pytest-xdist has its own) and made empty
after each test. A failed test reports what the server refused meanwhile.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Generator
from typing import Any, Optional

import pytest

from ._errors import LatchfsError
from ._server import SHARE, Server

URL = "LATCHFS_URL"
TOKEN = "LATCHFS_TOKEN"
REFUSALS_MAX = 10
"""How many failed requests the report of a failed test shows, the latest."""

_USED = pytest.StashKey[tuple[Server, int]]()
_SEEN = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the plugin."""
    group = parser.getgroup("latchfs", "latchfs: Azure Storage on this machine")
    group.addoption(
        "--latchfs-url",
        default=os.environ.get(URL),
        metavar="URL",
        help=f"admin address of a running server; default: start one (variable {URL})",
    )
    group.addoption(
        "--latchfs-token",
        default=os.environ.get(TOKEN),
        metavar="TOKEN",
        help=f"what that server asks for, if it does (variable {TOKEN})",
    )
    parser.addini("latchfs_args", "further options of `latchfs serve`", default="")
    parser.addini("latchfs_shares", f"the file shares of the server; default: {SHARE}", default="")
    parser.addini("latchfs_mount", "mount the first share", type="bool", default=False)


@pytest.fixture(scope="session")
def latchfs_server(request: pytest.FixtureRequest) -> Generator[Server, None, None]:
    """The server of this process. Tests use `latchfs`, which is empty at their start."""
    config = request.config
    shares = str(config.getini("latchfs_shares")).split()
    url: Optional[str] = config.getoption("--latchfs-url")
    if url:
        if "PYTEST_XDIST_WORKER" in os.environ:
            raise pytest.UsageError(
                "--latchfs-url: workers of pytest-xdist would reset each other's tests on one "
                "server; leave the option away, and each worker starts a server of its own"
            )
        token: Optional[str] = config.getoption("--latchfs-token")
        # The reset also removes shares that an earlier run made and left.
        Server.connect(url, token=token).reset()
        yield Server.connect(url, token=token, share=shares[0] if shares else None)
        return
    with Server(
        shares=shares or [SHARE],
        mount=bool(config.getini("latchfs_mount")),
        args=shlex.split(str(config.getini("latchfs_args"))),
    ) as server:
        yield server


@pytest.fixture
def latchfs(
    request: pytest.FixtureRequest, latchfs_server: Server
) -> Generator[Server, None, None]:
    """An empty server: files, blobs, queues and tables, holds, gates, faults and the clock."""
    session = request.session.stash
    seen = session[_SEEN] = _last_event(latchfs_server, session.get(_SEEN, 0))
    request.node.stash[_USED] = (latchfs_server, seen)
    yield latchfs_server
    latchfs_server.reset()


def _last_event(server: Server, after: int) -> int:
    """The number of the latest event."""
    last: int = server.api.get("/events", {"after": after})["newest"]
    return last


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to the report of a failed test what the server has refused during it."""
    report = yield
    used = item.stash.get(_USED, None)
    if used is not None and report.when == "call" and report.failed:
        server, last = used
        try:
            events = server.events(after=last, kind="request")
        except LatchfsError as error:
            report.sections.append(("latchfs", f"the server does not answer: {error}"))
        else:
            lines = [_line(event) for event in events if _failed(event)][-REFUSALS_MAX:]
            if lines:
                report.sections.append(("latchfs refused", "\n".join(lines)))
    return report


def _failed(event: dict[str, Any]) -> bool:
    """Whether a request was refused, or a fault closed its connection: then it has no status."""
    return event["status"] is None or event["status"] >= 400


def _line(event: dict[str, Any]) -> str:
    """A request that failed in one line, for people."""
    if event["status"] is None:
        closed = {"message": "a fault closed the connection"}
        event = {**event, "status": "no answer", "code": None, "refusal": closed}
    what = [event["operation"], event.get("object"), event["status"], event.get("code")]
    words = " ".join(str(word) for word in what if word)
    message = (event.get("refusal") or {}).get("message")
    return f"{words}: {message}" if message else words
