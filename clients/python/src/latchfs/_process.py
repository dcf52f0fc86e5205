"""Starts the program and ends it again.

The server holds the read end of a pipe whose write end is this process's alone: when this process
ends, however it does, the server ends too (`--until-stdin-closes`). The server has a session of its
own, so that Ctrl-C reaches the test runner first, which then stops the server.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import IO, Any, Optional

from ._binary import binary
from ._errors import StartError

STOP_SECONDS = 30.0
"""How long a server may take to stop before it is killed."""


class Process:
    """A server that this process has started."""

    def __init__(
        self, arguments: Sequence[str], env: Optional[Mapping[str, str]], timeout: float
    ) -> None:
        self._errors = tempfile.TemporaryFile()
        command = [binary(), "serve", "--json", "--until-stdin-closes", *arguments]
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(env),
            start_new_session=True,
        )
        # Ends the server where the value is dropped, and before the interpreter ends.
        self._finalizer = weakref.finalize(self, _stop, os.getpid(), self._popen, self._errors)
        _STARTED.add(self._popen)
        try:
            self.ready = self._wait(timeout)
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The process ID of the server."""
        return self._popen.pid

    def errors(self) -> str:
        """What the server has written to standard error."""
        size = os.fstat(self._errors.fileno()).st_size
        text = os.pread(self._errors.fileno(), size, 0).decode(errors="replace").strip()
        return "\n".join(_message(line) for line in text.splitlines())

    def stop(self) -> None:
        """Stops the server and waits for its end. A second call does nothing."""
        self._finalizer()

    def _wait(self, timeout: float) -> dict[str, Any]:
        """Waits for the line that says where everything is."""
        lines: list[bytes] = []
        output = self._popen.stdout
        assert output is not None
        reader = threading.Thread(target=lambda: lines.append(output.readline()), daemon=True)
        reader.start()
        reader.join(timeout)
        if reader.is_alive():
            raise StartError(f"the server was not ready within {timeout:g} s: {self.errors()}")
        try:
            ready = json.loads(lines[0])
        except ValueError:
            code = self._popen.wait(STOP_SECONDS)
            raise StartError(f"latchfs ended with status {code}: {self.errors()}") from None
        if not isinstance(ready, dict):
            raise StartError(f"latchfs said {ready!r} where it says that it is ready")
        return ready


def _message(line: str) -> str:
    """The message of an error in JSON; any other line as it is."""
    try:
        return str(json.loads(line)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return line


_STARTED: weakref.WeakSet[subprocess.Popen[bytes]] = weakref.WeakSet()


def _let_go() -> None:
    """In a forked child: closes its copies of the pipes, which would keep the servers running."""
    for popen in list(_STARTED):
        if popen.stdin is not None:
            popen.stdin.close()


os.register_at_fork(after_in_child=_let_go)


def _stop(owner: int, popen: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    if os.getpid() != owner:
        # A forked child ends: the server is its parent's.
        return
    _STARTED.discard(popen)
    if popen.stdin is not None:
        popen.stdin.close()
    try:
        popen.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()
    if popen.stdout is not None:
        popen.stdout.close()
    errors.close()


def _environment(added: Optional[Mapping[str, str]]) -> dict[str, str]:
    """The environment without variables that are options of another server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LATCHFS_")}
    kept.update(added or {})
    return kept
