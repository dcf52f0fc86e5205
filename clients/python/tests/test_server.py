"""Server, as a test uses it."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Optional

import pytest
import requests
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.fileshare import ShareFileClient, generate_file_sas

from latchfs import ApiError, LatchfsError, Refused, Server, StartError, WaitTimeout


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    with Server(shares=["docs", "other"]) as server:
        yield server


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    yield shared
    shared.reset()


def test_a_server_says_where_its_services_are_and_ends_with_its_block() -> None:
    with Server() as server:
        pid = server.pid
        assert sorted(server.endpoints) == ["blob", "file", "queue", "smb", "table"]
        assert server.key in server.connection_string
        assert server.endpoints["file"].endswith(server.account)
        same = Server.connect(server.admin)
        assert (same.connection_string, same.pid) == (server.connection_string, None)
        assert same.share == "share"
        same.close()
        assert Path(f"/proc/{pid}").exists(), "a client that connects ends nothing"
    assert not Path(f"/proc/{pid}").exists()
    server.close()


@pytest.mark.parametrize("sent, spoken", [("999", "version 999"), (None, "no version")])
def test_a_server_with_another_version_of_the_api_is_told_from_one_that_is_broken(
    sent: Optional[str], spoken: str
) -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            if sent is not None:
                self.send_header("x-latchfs-api", sent)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        with pytest.raises(LatchfsError, match=f"speaks {spoken} of the API, this package"):
            Server.connect(f"http://127.0.0.1:{other.server_port}")
        other.shutdown()


def test_a_held_file_is_refused_and_free_after_the_block(server: Server) -> None:
    file = server.put("dir/sub/a.txt", b"x")
    with server.hold("dir/sub/a.txt", access="rw", share="none") as hold:
        with pytest.raises(ResourceExistsError) as refused:
            file.download_file()
        assert getattr(refused.value, "error_code") == "SharingViolation"
        with pytest.raises(Refused) as second:
            server.hold("/dir/sub/a.txt")
        assert second.value.kind == "sharing_violation"
        assert second.value.holder is not None
        assert second.value.holder["handle"] == hold.handle
        assert [row["handle"] for row in server.handles()] == [hold.handle]
        assert len(server.why("dir/sub/a.txt")["opens"]) == 1
    assert file.download_file().readall() == b"x"
    assert server.handles() == []
    assert hold.release() is False, "a second release does nothing"


def test_a_hold_may_make_a_file_and_lock_ranges(server: Server) -> None:
    hold = server.hold(
        "new.txt",
        share_name="other",
        access="rw",
        share="rwd",
        disposition="open-if",
        locks=[(0, 10)],
    )
    locks = server.why("file:other/new.txt")["locks"]
    assert len(locks) == 1
    assert hold.release() is True
    with pytest.raises(ApiError) as missing:
        server.hold("missing.txt")
    assert (missing.value.status, missing.value.kind) == (404, "not_found")
    assert f"file:{server.share}/missing.txt" in str(missing.value)
    with pytest.raises(ApiError, match=f"^file:{server.share}/missing.txt: no such file"):
        server.why("missing.txt")


def test_a_client_that_names_no_share_means_one_that_is_there(server: Server) -> None:
    assert Server.connect(server.admin).share == "docs"
    assert Server.connect(server.admin, share="other").share == "other"


def test_requests_stop_at_a_gate_and_go_on_when_it_lets_them(server: Server) -> None:
    file = server.put("a.txt", b"x")
    read: list[bytes] = []
    with server.gate("Get File", "**") as gate:
        with pytest.raises(WaitTimeout):
            gate.wait(timeout=0.05)
        thread = threading.Thread(target=lambda: read.append(file.download_file().readall()))
        thread.start()
        assert gate.wait() == 1
        assert len(gate.status()["waiting"]) == 1 and read == []
        assert gate.release() == 1
        thread.join(60)
    assert read == [b"x"]
    with pytest.raises(ApiError, match="no operation is called"):
        server.gate("Gett File")


def test_a_fault_befalls_requests_so_many_times(server: Server) -> None:
    file = server.put("a.txt", b"x")
    refusal = (403, "InsufficientAccountPermissions")
    with server.fault("Get File", "**", answer=refusal, times=1) as fault:
        with pytest.raises(HttpResponseError):
            file.download_file()
        assert file.download_file().readall() == b"x"
        assert fault.met == 1
    assert fault.met == 0
    with pytest.raises(LatchfsError):
        server.fault("Get File")
    with pytest.raises(LatchfsError):
        server.fault("Get File", drop="sometimes")
    for wrong in (503, (503,)):
        with pytest.raises(LatchfsError, match="as in .503, 'ServerBusy'"):
            server.fault("Get File", answer=wrong)  # type: ignore[arg-type]


def test_the_clock_goes_as_the_test_says(server: Server) -> None:
    stood = server.clock.freeze()
    assert server.clock.frozen and server.clock.now() == stood
    later = server.clock.advance(timedelta(minutes=1))
    assert later - stood == timedelta(minutes=1)
    assert server.clock.advance(1.5) - later == timedelta(seconds=1.5)
    moment = datetime(stood.year + 1, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    assert server.clock.set(moment) == moment
    assert server.clock.run() >= moment and not server.clock.frozen
    with pytest.raises(ApiError, match="'advance_ms' is -5000: expected 0 or more"):
        server.clock.advance(-5)


def test_the_clock_says_what_it_expects(server: Server) -> None:
    with pytest.raises(LatchfsError, match="'61s': expected seconds, or a timedelta"):
        server.clock.advance("61s")  # type: ignore[arg-type]
    with pytest.raises(LatchfsError, match="clock.set: expected a datetime, not 'yesterday'"):
        server.clock.set("yesterday")  # type: ignore[arg-type]


def test_a_path_of_the_api_needs_no_slash(server: Server) -> None:
    assert server.api.get("leases") == server.api.get("/leases")
    with pytest.raises(ApiError, match="^/api/v1/nonsense is not a call"):
        server.api.get("nonsense")


def test_a_state_is_saved_and_restored(server: Server) -> None:
    file = server.put("a.txt", b"one")
    server.state.save("base")
    server.put("a.txt", b"two")
    server.state.restore("base")
    assert file.download_file().readall() == b"one"
    assert server.state.list() == ["base"]
    server.state.delete("base")
    assert server.state.list() == []


def test_a_reset_leaves_nothing_but_the_shares(server: Server) -> None:
    file = server.put("a.txt", b"x")
    hold = server.hold("a.txt")
    server.gate("Get File", "**")
    server.fault("Get File", "**", drop="before")
    server.clock.advance(3600)
    server.reset()
    assert hold.release() is False, "the reset has ended it"
    with pytest.raises(ResourceNotFoundError):
        file.download_file()
    assert server.put("a.txt", b"y", share_name="other").download_file().readall() == b"y"
    assert abs(server.clock.now() - datetime.now(timezone.utc)) < timedelta(minutes=10)


def test_what_happened_can_be_read_and_waited_for(server: Server) -> None:
    file = server.put("a.txt", b"x")
    seen = server.events()
    last = seen[-1]["seq"] if seen else 0
    with server.hold("a.txt"), pytest.raises(ResourceExistsError):
        file.download_file()
    refused = server.events(after=last, kind="refused", wait=20)
    assert refused[-1]["rule"] == "sharing_violation"
    with pytest.raises(ApiError, match="there is no kind 'nonsense'"):
        server.events(kind="nonsense")


def test_threads_on_one_pool_and_a_sas_have_the_names_of_their_keys(server: Server) -> None:
    server.put("a.txt", b"x")
    keys = {name: _key(server.client(name)) for name in ("A", "B")}
    assert server.client("A") == server.client("A")
    with pytest.raises(ApiError, match="is not the name of a client"):
        server.client("a b")
    mark = server.mark("threads")
    session = requests.Session()
    session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=1, pool_block=True))

    def read(name: str, credential: str) -> None:
        pool = RequestsTransport(session=session, session_owner=False)
        client = ShareFileClient(
            server.endpoints["file"], server.share, "a.txt", credential=credential, transport=pool
        )
        for _ in range(10):
            client.download_file(user_agent=f"of-{name}").readall()

    threads = [threading.Thread(target=read, args=pair) for pair in keys.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = server.events(after=mark, kind="request")
    assert len(rows) == 20
    assert all(f"of-{row['client']}" in row["user_agent"] for row in rows)
    assert {row["client_by"] for row in rows} == {"key"}
    assert len({row["connection"] for row in rows}) == 1, "both are on one connection"
    mark = server.mark("SAS")
    sas = generate_file_sas(
        server.account,
        server.share,
        ["a.txt"],
        account_key=keys["B"],
        permission="r",
        expiry=datetime.now(timezone.utc) + timedelta(hours=1),
    )
    read("B", sas)
    rows = server.events(after=mark, kind="request")
    assert {(row["client"], row["client_by"]) for row in rows} == {("B", "key")}
    session.close()


def _key(connection_string: str) -> str:
    parts = dict(part.split("=", 1) for part in connection_string.strip(";").split(";"))
    return parts["AccountKey"]


def test_a_server_with_a_private_key_asks_for_its_token(tmp_path: Path) -> None:
    accounts = tmp_path / "accounts"
    accounts.write_text("private:Zmlyc3Q=\n")
    with Server(args=["--account-file", str(accounts)]) as server:
        assert (server.account, server.key) == ("private", "Zmlyc3Q=")
        assert server.put("a.txt", b"x").download_file().readall() == b"x"
        assert server.api.token is not None
        with pytest.raises(ApiError) as refused:
            Server.connect(server.admin)
        assert (refused.value.status, refused.value.kind) == (401, "unauthorized")
        same = Server.connect(server.admin, token=server.api.token)
        assert same.connection_string == server.connection_string


def test_a_start_that_fails_says_why() -> None:
    with pytest.raises(StartError, match="--no-such-option"):
        Server(args=["--no-such-option"])
    with pytest.raises(StartError, match="^latchfs ended with status 2: share name 'A_b': expected"):
        Server(shares=["A_b"])
    with pytest.raises(LatchfsError):
        Server(shares="docs")
    with pytest.raises(LatchfsError, match="does the server run"):
        Server.connect("http://127.0.0.1:1")
    with pytest.raises(LatchfsError):
        Server.connect("nonsense")


def test_variables_of_another_server_are_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATCHFS_NO_AUTH", "not a switch")
    monkeypatch.setenv("LATCHFS_SHARES", "elsewhere")
    with Server() as server:
        assert server.put("a.txt", b"x").download_file().readall() == b"x"


FORKS = """
import os, sys
from latchfs import Server
server = Server()
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
server.reset()
sleeper = os.fork()
if sleeper == 0:
    import time
    time.sleep(1000)
server.close()
os.kill(sleeper, 9)
print("closed")
"""


def test_a_forked_child_neither_stops_the_server_nor_keeps_it() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, timeout=60)
    assert done.stdout == b"closed\n", done.stderr


def test_a_program_that_forgets_its_server_ends_and_the_server_with_it() -> None:
    script = "from latchfs import Server; server = Server(); print(server.pid, flush=True)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not Path(f"/proc/{done.stdout.decode().strip()}").exists()


@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="mounts need /dev/fuse")
def test_a_mounted_share_is_a_directory_that_goes_with_the_server() -> None:
    with Server(mount=True) as server:
        assert server.mount is not None
        (server.mount / "a.txt").write_bytes(b"x")
        assert server.file("a.txt").download_file().readall() == b"x"
    assert not server.mount.exists()
