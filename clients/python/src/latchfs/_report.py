"""The report at the end of a run of pytest: what went wrong between the clients of its tests.

Each server tells its report before it ends. Workers of pytest-xdist pass theirs on to the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

import pytest

from ._server import Server
from ._story import finding

LEVELS = ("error", "warn", "hint")
WORKER = "latchfs_reports"

REPORTS = pytest.StashKey[list[dict[str, Any]]]()
"""The reports of the servers of this run, each with its JUnit document."""


def add_options(group: pytest.OptionGroup) -> None:
    """Adds the options of the report."""
    group.addoption(
        "--latchfs-report",
        nargs="?",
        const="summary",
        choices=["summary", *LEVELS],
        metavar="LEVEL",
        help="say at the end what went wrong between clients; with error, warn or hint, findings "
        "of that level and above fail the run",
    )
    group.addoption(
        "--latchfs-report-junit",
        metavar="FILE",
        help="write these findings to FILE too, as JUnit does",
    )


def collect(config: pytest.Config, server: Server, since: Optional[str]) -> None:
    """Keeps the report of a server that is about to end."""
    if config.getoption("--latchfs-report") or config.getoption("--latchfs-report-junit"):
        junit = {"since": since, "fail_on": _level(config) or "error"}
        query = {name: value for name, value in junit.items() if value}
        report = {
            **server.report(since=since, level="hint"),
            "junit": server.api.get("/report/junit", query)["junit"],
        }
        config.stash.setdefault(REPORTS, []).append(report)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker of pytest-xdist has ended."""
    reports = getattr(node, "workeroutput", {}).get(WORKER, [])
    node.config.stash.setdefault(REPORTS, []).extend(reports)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the file, and fails the run if it is to fail."""
    reports = session.config.stash.get(REPORTS, [])
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[WORKER] = reports
        return
    file = session.config.getoption("--latchfs-report-junit")
    if file:
        head, tail = "<testsuites>\n", "</testsuites>"
        suites = "".join(one["junit"].split(head)[1].split(tail)[0] for one in reports)
        text = f'<?xml version="1.0" encoding="utf-8"?>\n{head}{suites}{tail}\n'
        Path(file).write_text(text, encoding="utf-8")
    level = _level(session.config)
    fatal = LEVELS[: LEVELS.index(level) + 1] if level else ()
    bad = [one for one in reports if level and one["incomplete"] or _count(one, *fatal)]
    if bad and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Says what was found."""
    reports = config.stash.get(REPORTS, [])
    if not reports or not config.getoption("--latchfs-report"):
        return
    terminalreporter.section("latchfs report")
    for report in reports:
        for found in report["findings"]:
            terminalreporter.write_line(finding(found))
    counts = [f"{sum(_count(one, level) for one in reports)} {level}" for level in LEVELS]
    requests = sum(one["requests"] for one in reports)
    more = "; incomplete: there may be more" if any(one["incomplete"] for one in reports) else ""
    terminalreporter.write_line(f"{', '.join(counts)} in {requests} requests{more}")


def _level(config: pytest.Config) -> Optional[str]:
    level = config.getoption("--latchfs-report")
    return None if level == "summary" else level


def _count(report: dict[str, Any], *levels: str) -> int:
    return sum(found["level"] in levels for found in report["findings"])
