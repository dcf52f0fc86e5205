"""The story of a test: its last requests in order, and findings of the report, a line each."""

from __future__ import annotations

from typing import Any

CONDITIONS = {
    "if_match": "if-match",
    "if_none_match": "if-none-match",
    "if_unmodified_since": "if-unmodified-since",
    "lease_sent": "lease",
    "receipt_used": "receipt",
}
"""Fields of an event that say on what a request depends, and their names in a line."""


def line(event: dict[str, Any]) -> str:
    """A request in one line, for people: who, what, on which condition, and what came of it."""
    asked = [event["operation"], event.get("object")]
    asked += [f"{name} {event[field]}" for field, name in CONDITIONS.items() if field in event]
    came = [event["status"], event.get("code")] if event["status"] else ["no answer"]
    message = (event.get("refusal") or {}).get("message")
    if event["status"] is None:
        gone = "the client closed the connection"
        message = gone if event["answer"] == "client-gone" else "a fault closed the connection"
    words = " ".join(str(word) for word in asked if word)
    outcome = " ".join(str(word) for word in came if word)
    return f"{event['client']}: {words} -> {outcome}" + (f": {message}" if message else "")


def finding(found: dict[str, Any]) -> str:
    """A finding of the report in one line."""
    times = f", {found['count']} times" if found["count"] > 1 else ""
    mark = f", in {found['mark']}" if "mark" in found else ""
    return f"{found['level']}: {found['rule']} of {found['object']}{times}{mark}: {found['message']}"
