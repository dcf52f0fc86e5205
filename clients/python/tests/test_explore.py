"""Explored tests: a run of pytest inside the test, as its users have it."""

from __future__ import annotations

import re
import threading

# Before the first test: pytester forgets modules that are first imported during a test.
import azure.storage.blob
import pytest

from latchfs import ExploreError, Server, Stuck

pytest_plugins = ["pytester"]

COUNTER = """
    import pytest
    from azure.core import MatchConditions
    from azure.core.exceptions import ResourceModifiedError
    from azure.storage.blob import BlobServiceClient

    def box(connection_string):
        service = BlobServiceClient.from_connection_string(connection_string, retry_total=0)
        return service.get_container_client("box")

    def count_up(connection_string, guarded=False):
        blob = box(connection_string).get_blob_client("count")
        while True:
            read = blob.download_blob()
            more = str(int(read.readall()) + 1)
            guard = {"etag": read.properties.etag, "match_condition": MatchConditions.IfNotModified}
            try:
                return blob.upload_blob(more, overwrite=True, **(guard if guarded else {}))
            except ResourceModifiedError:
                pass

    @pytest.fixture
    def count(latchfs):
        made = box(latchfs.connection_string)
        made.create_container()
        made.upload_blob("count", "0")
        return lambda: int(made.download_blob("count").readall())
"""

RACE = (
    COUNTER
    + """
    @pytest.mark.explore
    def test_race(latchfs, count):
        with latchfs.clients() as c:
            c.run("A", count_up)
            c.run("B", count_up)
        assert count() == 2
"""
)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner run is no worker of the outer one."""
    names = ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "LATCHFS_URL", "LATCHFS_SCHEDULE")
    for name in names:
        monkeypatch.delenv(name, raising=False)


def test_a_race_is_found_and_its_token_replays_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_one=RACE)
    run = pytester.runpytest_subprocess()
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines(
        [
            "*assert 1 == 2*",
            "*failed in the order A.B2.A~*",
            "*pytest test_one.py::test_race --latchfs-schedule 'A.B2.A~*",
            "*step *client *operation *object *choice *status*",
            "*1 *A *Get Blob *blob:box/count *A *206*",
            "*2 *B *Get Blob *blob:box/count *B *206*",
            "*3 *B *Put Blob *blob:box/count *B *201*",
            "*4 *A *Put Blob *blob:box/count *A *201*",
            "*report: error: lost-update of blob:box/count*",
        ]
    )
    run.stdout.no_fnmatch_line("*the last requests of the test*")
    found = re.search(r"--latchfs-schedule '(A\.B2\.A~[0-9a-f]{4})'", run.stdout.str())
    assert found
    again = pytester.runpytest_subprocess("--latchfs-schedule", found[1])
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["*assert 1 == 2*"])


def test_corrected_programs_pass_and_the_run_says_in_how_many_orders(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        COUNTER
        + """
    @pytest.mark.explore
    def test_cured(latchfs, count):
        with latchfs.clients() as c:
            for name in ("first", "second"):
                c.run(name, count_up, guarded=True)
        assert count() == 2

    def test_not_explored(latchfs, count):
        with latchfs.clients() as c:
            result = c.run("A", count_up)
        assert count() == 1 and result.result()["etag"]
    """
    )
    run = pytester.runpytest_subprocess()
    run.assert_outcomes(passed=2)
    run.stdout.fnmatch_lines(["*latchfs explored*", "*::test_cured: passed in * orders, which are all*"])


def test_workers_of_xdist_explore_on_their_own_servers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_one=RACE, test_two=RACE)
    run = pytester.runpytest_subprocess("-n", "2")
    run.assert_outcomes(failed=2)
    run.stdout.fnmatch_lines(["*failed in the order A.B2.A~*", "*latchfs explored*"])


def test_what_does_not_fit_is_said(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.explore
        def test_no_fixture():
            pass

        @pytest.mark.explore
        def test_no_clients(latchfs):
            pass

        @pytest.mark.explore(buget=3)
        def test_misspelt(latchfs):
            pass
        """
    )
    run = pytester.runpytest_subprocess()
    run.assert_outcomes(failed=3)
    run.stdout.fnmatch_lines(
        [
            "*has the fixture `latchfs`*",
            "*nothing is explored: run the clients in `with latchfs.clients() as c:`*",
            "*unexpected keyword argument 'buget'*",
        ]
    )
    run = pytester.runpytest_subprocess("--latchfs-schedule", "A.B~0000")
    run.stderr.fnmatch_lines(["*the token is of one explored test; name that one: *test_no_fixture*"])
    assert run.ret != 0


def test_a_token_of_another_test_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RACE)
    for token, said in [("A.B2.A~0000", "*step*"), ("A.C~0000", "*copy the whole token*")]:
        run = pytester.runpytest_subprocess("--latchfs-schedule", token)
        run.assert_outcomes(failed=1)
        run.stdout.fnmatch_lines([said])


def box(connection_string: str) -> azure.storage.blob.ContainerClient:
    service = azure.storage.blob.BlobServiceClient.from_connection_string(
        connection_string, retry_total=0
    )
    return service.get_container_client("box")


def test_clients_that_wait_for_each_other_are_told() -> None:
    with Server() as server:

        def test() -> None:
            box(server.connection_string).create_container()
            one, two = threading.Lock(), threading.Lock()

            def work(cs: str, first: threading.Lock, second: threading.Lock) -> None:
                with first:
                    box(cs).get_container_properties()
                    # A lock that is not given leaves its thread, which ends with the process.
                    with second:
                        box(cs).get_container_properties()

            with server.clients() as c:
                c.run("A", work, one, two)
                c.run("B", work, two, one)

        found = server.explore(test)
        assert found.failure and isinstance(found.failure.error, Stuck), found
        assert "A" in str(found.failure.error) and "B" in str(found.failure.error)
        assert not server.clock.frozen and not server.state.list()
        assert server.api.get("/clients")["clients"] == []


def test_an_interrupted_search_leaves_nothing() -> None:
    with Server() as server:

        def test() -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            server.explore(test)
        with pytest.raises(ExploreError, match="nothing is explored"):
            server.explore(lambda: None)
        assert not server.clock.frozen and not server.state.list()
        assert server.api.get("/clients")["clients"] == []
