"""What schemathesis is told about the HTTP API: no call may keep the run waiting."""

import schemathesis

WAIT_MS = 20


@schemathesis.hook
def before_call(context, case, kwargs):
    """Shortens waits, and lets no hold last as long as its connection."""
    query = case.query if isinstance(case.query, dict) else {}
    if case.operation.path.endswith("/wait") and "timeout_ms" not in query:
        query["timeout_ms"] = WAIT_MS
    for name in ("timeout_ms", "wait_ms"):
        if str(query.get(name, "")).isdigit():
            query[name] = min(int(query[name]), WAIT_MS) if int(query[name]) <= 600_000 else query[name]
    case.query = query
    if isinstance(case.body, dict) and case.body.get("while_connected") is True:
        case.body["while_connected"] = False
