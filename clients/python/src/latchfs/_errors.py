"""What can go wrong between a test and its server."""

from __future__ import annotations

from typing import Any, Optional


class LatchfsError(Exception):
    """The base of all errors of this package."""


class StartError(LatchfsError):
    """The server did not start; the message holds what it wrote to standard error."""


class ApiError(LatchfsError):
    """The admin API refused a call.

    `kind` names the reason as docs/api.md does, `status` is the status of the HTTP answer.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class Refused(ApiError):
    """A rule of the service refused, because of somebody else.

    `kind` names the rule (`sharing_violation`), `holder` describes the open in the way, if it is one.
    """

    def __init__(
        self, status: int, kind: str, message: str, holder: Optional[dict[str, Any]]
    ) -> None:
        super().__init__(status, kind, message)
        self.holder = holder


class WaitTimeout(ApiError):
    """What was waited for has not happened in time."""
