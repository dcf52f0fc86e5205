"""Calls of the admin API, with the standard library alone."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from copy import copy
from typing import Any, Optional
from urllib.parse import quote, urlencode, urlsplit

from ._errors import ApiError, LatchfsError, Refused, WaitTimeout

PREFIX = "/api/v1"
VERSION = "3"
"""The version of the API that this package speaks. A server tells its own in each answer."""
TIMEOUT_SECONDS = 60.0
"""How long a call may take that does not wait for something."""

Query = Optional[Mapping[str, Any]]
Body = Optional[Mapping[str, Any]]


def given(**fields: Any) -> dict[str, Any]:
    """Returns the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def name(part: object) -> str:
    """Returns a text as one part of a path."""
    return quote(str(part), safe="")


class Api:
    """The admin API of one server. Threads may share it."""

    def __init__(
        self,
        url: str,
        *,
        token: Optional[str] = None,
        account: Optional[str] = None,
        client: str = "python",
        context: Optional[ssl.SSLContext] = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise LatchfsError(f"{url!r} is not the URL of a server, such as http://127.0.0.1:10009")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self.token = token
        self._account = account
        self._client = client
        self._parts = parts
        self._context = context

    def of_client(self, client: str) -> Api:
        """Returns the same API, asked in the name of this client."""
        other = copy(self)
        other._client = client
        return other

    def get(self, path: str, query: Query = None, *, timeout: float = TIMEOUT_SECONDS) -> Any:
        """Asks, and returns the answer."""
        return self.call("GET", path, query=query, timeout=timeout)

    def post(self, path: str, body: Body = None) -> Any:
        """Does something, and returns the answer."""
        return self.call("POST", path, body=body or {})

    def put(self, path: str, body: Body = None) -> Any:
        """Stores something, and returns the answer."""
        return self.call("PUT", path, body=body or {})

    def delete(self, path: str, query: Query = None) -> Any:
        """Removes something, and returns the answer."""
        return self.call("DELETE", path, query=query)

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query = None,
        body: Body = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> Any:
        """Calls the path below /api/v1 (`/leases` or `leases`) and returns the JSON of the answer.

        Raises `Refused` where a rule refused, `WaitTimeout` where a wait was too short, and
        `ApiError` for every other answer that is an error.
        """
        connection, answer = self._send(method, path, query, body, timeout)
        try:
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise LatchfsError(f"{method} {self.url}{_below(path)}: {error}") from error
        finally:
            connection.close()
        return _checked(answer.status, content)

    def hold_stream(self, path: str, body: Body) -> tuple[http.client.HTTPConnection, Any]:
        """Posts a request whose answer is one line of JSON and lasts as long as the connection."""
        connection, answer = self._send("POST", path, None, body, TIMEOUT_SECONDS)
        try:
            if answer.status >= 300:
                _checked(answer.status, answer.read())
            line = answer.readline()
            return connection, json.loads(line)
        except (OSError, ValueError, http.client.HTTPException) as error:
            connection.close()
            raise LatchfsError(f"POST {self.url}{PREFIX}{path}: {error}") from error
        except BaseException:
            connection.close()
            raise

    def _send(
        self, method: str, path: str, query: Query, body: Body, timeout: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        asked = given(**(query or {}), account=self._account)
        target = _below(path) + (f"?{urlencode(asked)}" if asked else "")
        headers = {"x-latchfs-client": self._client, "accept": "application/json"}
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(body).encode()
        connection = self._connection(timeout)
        try:
            connection.request(method, target, body=content, headers=headers)
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise LatchfsError(
                f"{method} {self.url}{target}: {error}; does the server run, and is this its "
                "admin address?"
            ) from error
        # A server of 0.2 names none.
        version = answer.getheader("x-latchfs-api")
        if version != VERSION:
            connection.close()
            spoken = "no version" if version is None else f"version {version}"
            raise LatchfsError(
                f"the server at {self.url} speaks {spoken} of the API, this package version "
                f"{VERSION}: use the package and the server of one release, and the server's "
                "admin address"
            )
        return connection, answer

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=self._context)
        return http.client.HTTPConnection(host, port, timeout=timeout)


def _below(path: str) -> str:
    return f"{PREFIX}/{path.lstrip('/')}"


def _checked(status: int, content: bytes) -> Any:
    try:
        answer = json.loads(content) if content.strip() else {}
    except ValueError:
        text = content[:200].decode(errors="replace")
        raise ApiError(status, "failed", f"the answer {status} is not JSON: {text}") from None
    if status < 300:
        return answer
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        raise ApiError(status, "failed", f"the server answered {status}: {answer!r}")
    kind, message = str(error.get("kind")), str(error.get("message"))
    if status == 408:
        raise WaitTimeout(status, kind, message)
    if status == 409:
        raise Refused(status, kind, message, error.get("holder"))
    raise ApiError(status, kind, message)
