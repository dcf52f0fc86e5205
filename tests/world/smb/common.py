"""What the scripts share: where the server is, its account, and REST for the other side."""
import base64
import hashlib
import hmac
import json
import sys
import urllib.error
import urllib.request
from datetime import datetime, timezone
from pathlib import Path

READY = Path(sys.argv[1])
ready = json.loads(READY.read_text())
folder = READY.parent
host, port = ready["endpoints"]["smb"].removeprefix("smb://").rsplit(":", 1)
port = int(port)
parts = dict(part.split("=", 1) for part in ready["connection_string"].split(";") if part)
account, key = parts["AccountName"], parts["AccountKey"]


def rest(method, path, headers=None, body=b""):
    """A request of the REST interface, signed: status, error code, body."""
    headers = {
        "x-ms-version": "2021-06-08",
        "x-ms-date": datetime.now(timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "Content-Type": "application/octet-stream",
        **(headers or {}),
    }
    named = sorted(name for name in headers if name.startswith("x-ms-"))
    canonical = "".join(f"{name}:{headers[name]}\n" for name in named)
    length = str(len(body)) if body else ""
    kind = headers["Content-Type"]
    resource = f"/{account}/{account}/share/{path}"
    text = f"{method}\n\n\n{length}\n\n{kind}\n\n\n\n\n\n\n{canonical}{resource}"
    signature = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {account}:{base64.b64encode(signature).decode()}"
    url = f"{ready['endpoint']}/share/{path}"
    request = urllib.request.Request(url, data=body or None, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, "", answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["x-ms-error-code"], error.read()
