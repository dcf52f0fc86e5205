"""Fixtures for pytest: `latchfs`, an empty server for each test; and `@pytest.mark.explore`.

The server is started once in each process (each worker of pytest-xdist has its own) and made empty
after each test. A failed test tells its story: its last requests in order, with who sent them, and
what the report says of them; one that was explored, the order in which it failed. What an order is,
is decided in `_explore`.
"""

from __future__ import annotations

import inspect
import os
import shlex
import uuid
from collections.abc import Generator
from typing import Optional

import pytest

from ._errors import LatchfsError
from ._explore import Explored, ExploreError
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
SCHEDULE = "LATCHFS_SCHEDULE"
STORY = "latchfs: the last requests of the test"
FINDINGS = "latchfs: what the report says"

EXPLORED = "latchfs explored"
"""The property of a test that says what its search found."""

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
    group.addoption(
        "--latchfs-schedule",
        default=os.environ.get(SCHEDULE),
        metavar="TOKEN",
        help=f"run the one explored test in this order alone (variable {SCHEDULE})",
    )
    parser.addini("latchfs_args", "further options of `latchfs serve`", default="")
    parser.addini("latchfs_shares", f"the file shares of the server; default: {SHARE}", default="")
    parser.addini("latchfs_mount", "mount the first share", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark."""
    config.addinivalue_line(
        "markers",
        "explore(budget=200, drops=0, advance=(), seed=1): run the test in every order of the "
        "requests of its clients that matters, and say in which one it fails",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuses a token for several tests: it is of one."""
    explored = [item.nodeid for item in items if item.get_closest_marker("explore")]
    if config.getoption("--latchfs-schedule") and len(explored) > 1:
        raise pytest.UsageError(
            "--latchfs-schedule: the token is of one explored test; name that one: "
            + ", ".join(explored)
        )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Optional[bool]:
    """Runs a test with the mark once for each order."""
    mark = pyfuncitem.get_closest_marker("explore")
    if mark is None:
        return None
    server = pyfuncitem.funcargs.get("latchfs")
    if not isinstance(server, Server) or inspect.iscoroutinefunction(pyfuncitem.obj):
        raise ExploreError(
            "@pytest.mark.explore is for a function, not a coroutine, that has the fixture "
            "`latchfs`; its clients may be coroutines"
        )
    token: Optional[str] = pyfuncitem.config.getoption("--latchfs-schedule")
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    options = {**mark.kwargs, "replay": token}
    found = server.explore(lambda: pyfuncitem.obj(**arguments), *mark.args, **options)
    pyfuncitem.user_properties.append((EXPLORED, str(found)))
    if found.failure is not None:
        raise _told(found, pyfuncitem.nodeid)
    return True


def _told(found: Explored, test: str) -> BaseException:
    """The error of the failing order, which names the order."""
    assert found.failure is not None
    token, error = found.failure.token, found.failure.error
    again = f"pytest {shlex.quote(test)} --latchfs-schedule {shlex.quote(token)}"
    text = f"latchfs: {found}\nto run this order again:\n  {again}\n{found.failure.table()}"
    if hasattr(error, "add_note"):
        error.add_note(text)
    else:
        # Python 3.10 and before have no notes.
        error.args = (*error.args, text)
    return error


@pytest.hookimpl(specname="pytest_terminal_summary")
def pytest_explored_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says of each explored test how many orders it passed in."""
    reports = [one for kind in ("passed", "failed") for one in terminalreporter.stats.get(kind, [])]
    lines = [
        f"{report.nodeid}: {value}"
        for report in reports
        for name, value in getattr(report, "user_properties", [])
        if name == EXPLORED and report.when == "call"
    ]
    if lines:
        terminalreporter.section(EXPLORED)
        for line in lines:
            terminalreporter.line(line)


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
        # The error of an explored test tells its order; its last requests are of many runs.
        explored = any(name == EXPLORED for name, _ in item.user_properties)
        try:
            lines = [] if explored else server.story(mark)
            found = server.report(since=item.nodeid, level="warn")["findings"]
            lines += [f"report: {finding(one)}" for one in found]
        except LatchfsError as error:
            lines = [f"the server does not answer: {error}"]
        if lines:
            report.sections.append((FINDINGS if explored else STORY, "\n".join(lines)))
    return report
