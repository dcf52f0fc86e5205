"""The pytest plugin: a run of pytest inside the test, as its users have it."""

from __future__ import annotations

from xml.etree import ElementTree

# Before the first test: pytester forgets modules that are first imported during a test.
import azure.storage.fileshare  # noqa: F401
import pytest

from latchfs import Server

pytest_plugins = ["pytester"]

HELD = """
    import pytest
    from azure.core.exceptions import ResourceExistsError

    def test_busy(latchfs):
        f = latchfs.put("a.txt", b"x")
        with latchfs.hold("a.txt", access="rw", share="none"), pytest.raises(ResourceExistsError):
            f.download_file()
        assert f.download_file().readall() == b"x"
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner run is no worker of the outer one."""
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "LATCHFS_URL", "LATCHFS_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_each_test_finds_the_server_empty(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("round", range(3))
        def test_round(latchfs, round):
            assert not latchfs.file("a.txt").exists()
            latchfs.put("a.txt", b"x")
            latchfs.hold("a.txt", share="none")
            latchfs.gate("Get File", "**")
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=3)


def test_a_running_server_is_used_and_made_empty_first(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HELD)
    with Server() as server:
        server.put("a.txt", b"left")
        server.hold("a.txt", share="none")
        pytester.runpytest_subprocess("--latchfs-url", server.admin).assert_outcomes(passed=1)
        assert not server.file("a.txt").exists()


def test_a_running_server_is_used_with_a_share_that_it_has(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HELD)
    with Server(shares=["docs", "other"]) as server:
        pytester.runpytest_subprocess("--latchfs-url", server.admin).assert_outcomes(passed=1)
        pytester.makeini("[pytest]\nlatchfs_shares = other\n")
        pytester.makepyfile('def test_share(latchfs): assert latchfs.share == "other"')
        pytester.runpytest_subprocess("--latchfs-url", server.admin).assert_outcomes(passed=1)


def test_workers_do_not_share_a_running_server(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HELD)
    with Server() as server:
        run = pytester.runpytest_subprocess("-n", "2", "--latchfs-url", server.admin)
    run.stdout.fnmatch_lines(["*each worker starts a server of its own*"])
    assert run.ret != 0


def test_a_failed_test_tells_its_story_with_the_names_of_clients(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        from azure.storage.fileshare import ShareFileClient

        def test_before(latchfs):
            latchfs.put("of another test", b"x")

        def test_busy(latchfs):
            latchfs.put("a.txt", b"x")
            a, b = (
                ShareFileClient.from_connection_string(latchfs.client(name), latchfs.share, "a.txt")
                for name in ("A", "B")
            )
            a.upload_file(b"y")
            latchfs.hold("a.txt", share="none")
            b.download_file()
        """
    )
    run = pytester.runpytest_subprocess()
    run.assert_outcomes(passed=1, failed=1)
    run.stdout.fnmatch_lines(
        [
            "*latchfs: the last requests of the test*",
            "A: Create File file:share/a.txt -> 201",
            "B: Get File file:share/a.txt -> 409 SharingViolation: *sharing violation*",
        ]
    )
    run.stdout.no_fnmatch_line("*of another test*")


def test_a_failed_test_shows_dropped_answers_and_the_run_goes_on(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from azure.core.exceptions import AzureError
        from azure.storage.fileshare import ShareFileClient

        @pytest.mark.parametrize("drop", ["before", "after"])
        def test_dropped(latchfs, drop):
            latchfs.put("a.txt", b"x")
            at = latchfs.connection_string, latchfs.share, "a.txt"
            client = ShareFileClient.from_connection_string(*at, retry_total=0)
            latchfs.fault("Get File", drop=drop)
            with pytest.raises(AzureError):
                client.download_file()
            assert False

        def test_after_it(latchfs):
            latchfs.put("a.txt", b"x")
        """
    )
    run = pytester.runpytest_subprocess()
    run.assert_outcomes(failed=2, passed=1)
    told = "*latchfs: the last requests of the test*"
    dropped = "*: Get File file:share/a.txt -> no answer: a fault closed the connection"
    run.stdout.fnmatch_lines([told, dropped, told, dropped])


RACE = """
    import pytest
    from azure.storage.fileshare import ShareFileClient

    @pytest.mark.parametrize("name", ["a", "b"])
    def test_race(latchfs, name):
        one, other = (
            ShareFileClient.from_connection_string(latchfs.client(client), latchfs.share, name)
            for client in ("A", "B")
        )
        one.upload_file(b"0")
        one.download_file().readall()
        other.upload_file(b"1")
        one.upload_file(b"2")
"""
FOUND = "error: file of file:share/?, in *::test_race[[]?[]]: A read it, B changed it, and A over*"


@pytest.mark.parametrize("options", [[], ["-n", "2"], ["--latchfs-url"]])
def test_the_report_is_told_at_the_end_and_fails_the_run_where_it_is_to(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    pytester.makepyfile(RACE)
    with Server() as server:
        if "--latchfs-url" in options:
            server.put("of an earlier run", b"x")
            options = [*options, server.admin]
        quiet = pytester.runpytest_subprocess(*options)
        told = pytester.runpytest_subprocess("--latchfs-report", *options)
        file = pytester.path / "report.xml"
        last = ("--latchfs-report=error", f"--latchfs-report-junit={file}", *options)
        fatal = pytester.runpytest_subprocess(*last)
    for run, ends in ((quiet, 0), (told, 0), (fatal, 1)):
        run.assert_outcomes(passed=2)
        assert run.ret == ends
    quiet.stdout.no_fnmatch_line("*latchfs report*")
    for run in (told, fatal):
        run.stdout.fnmatch_lines(
            ["*latchfs report*", FOUND, FOUND, "2 error, 0 warn, * hint in 14 requests"]
        )
    suites = ElementTree.parse(file).getroot()
    assert suites.tag == "testsuites"
    cases = [case for suite in suites for case in suite]
    for suite in suites:
        assert suite.tag == "testsuite"
        assert int(suite.attrib["tests"]) == len(suite)
        assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
    assert {(case.tag, *case.attrib) for case in cases} == {
        ("testcase", "classname", "name", "time")
    }
    assert len(suites.findall("testsuite/testcase/failure")) == 2


def test_options_of_the_server_stand_in_the_configuration(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nlatchfs_shares = docs other\nlatchfs_args = --blob-versioning\n")
    pytester.makepyfile(
        """
        def test_shares(latchfs):
            assert latchfs.share == "docs"
            f = latchfs.put("a.txt", b"x", share_name="other")
            assert f.download_file().readall() == b"x"
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
