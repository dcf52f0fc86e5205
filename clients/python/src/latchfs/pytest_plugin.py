"""Fixtures for pytest: `latchfs`, an empty server for each test.

The server is started once in each process (each worker of pytest-xdist has its own) and made empty
after each test. A failed test tells its story: its last requests in order, with who sent them, and
what the report says of them.
"""

from __future__ import annotations

import os
import shlex
import uuid
from collections.abc import Generator
from typing import Optional

import pytest

from ._errors import LatchfsError
from ._report import (
    add_options,
    collect,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
)
from ._server import SHARE, Server
from ._story import finding

# The hooks of the report are those of this plugin.
__all__ = ["pytest_sessionfinish", "pytest_terminal_summary", "pytest_testnodedown"]

URL = "LATCHFS_URL"
TOKEN = "LATCHFS_TOKEN"
STORY = "latchfs: the last requests of the test"

_USED = pytest.StashKey[tuple[Server, int]]()


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
    add_options(group)
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
        server = Server.connect(url, token=token, share=shares[0] if shares else None)
        since = f"a run of pytest, {uuid.uuid4()}"
        server.mark(since)
        yield server
        collect(config, server, since)
        return
    with Server(
        shares=shares or [SHARE],
        mount=bool(config.getini("latchfs_mount")),
        args=shlex.split(str(config.getini("latchfs_args"))),
    ) as server:
        yield server
        collect(config, server, None)


@pytest.fixture
def latchfs(
    request: pytest.FixtureRequest, latchfs_server: Server
) -> Generator[Server, None, None]:
    """An empty server: files, blobs, queues and tables, holds, gates, faults and the clock."""
    mark = latchfs_server.mark(request.node.nodeid)
    request.node.stash[_USED] = (latchfs_server, mark)
    yield latchfs_server
    latchfs_server.reset()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to the report of a failed test its last requests, in order, and what was found in them."""
    report = yield
    used = item.stash.get(_USED, None)
    if used is not None and report.when == "call" and report.failed:
        server, mark = used
        try:
            lines = server.story(mark)
            found = server.report(since=item.nodeid, level="warn")["findings"]
            lines += [f"report: {finding(one)}" for one in found]
        except LatchfsError as error:
            lines = [f"the server does not answer: {error}"]
        if lines:
            report.sections.append((STORY, "\n".join(lines)))
    return report
