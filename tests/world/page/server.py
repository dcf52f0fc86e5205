"""A running latchfs as the cases use it: its admin API, its command, and requests with a SAS."""

import http.client
import json
import pathlib
import subprocess
import urllib.error
import urllib.parse
import urllib.request

PATIENCE = 30


class Server:
    def __init__(self, ready_file, latchfs):
        self.folder = pathlib.Path(ready_file).parent
        self.ready = json.loads(pathlib.Path(ready_file).read_text())
        self.admin = self.ready["admin"]
        self._latchfs = latchfs

    def api(self, method, path, body=None, client="test"):
        """A call of the admin API: its status and its JSON."""
        headers = {"x-latchfs-client": client, "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        return request(method, f"{self.admin}/api/v1/{path}", data, headers)

    def ask(self, path):
        """The answer to a GET."""
        status, answer = self.api("GET", path)
        assert status == 200, (path, status, answer)
        return answer

    def do(self, method, path, body=None, client="test"):
        """The answer to a call that must succeed."""
        status, answer = self.api(method, path, body, client)
        assert 200 <= status < 300, (path, status, answer)
        return answer

    def run(self, *args, stdin=""):
        """Runs a command of latchfs; gives its standard output."""
        done = subprocess.run(
            [self._latchfs, *args], cwd=self.folder, input=stdin, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout.strip()

    def sas(self, target, permissions):
        """A URL with a SAS."""
        return self.run("sas", target, "--permissions", permissions)

    def blob(self, method, container, name, data=None, **headers):
        """A request for a blob, with a SAS of its container; underscores in names of headers are hyphens."""
        base, query = self.sas(f"blob:{container}", "rcwdl").split("?", 1)
        url = f"{base}/{urllib.parse.quote(name)}?{query}"
        more = {"x-ms-blob-type": "BlockBlob"} if method == "PUT" and "comp=" not in url else {}
        return request(method, url, data, {**more, **{k.replace("_", "-"): v for k, v in headers.items()}})

    def start_put(self, container, name, user_agent="tester/1"):
        """Sends a Put Blob and does not read its answer; gives the connection."""
        base, query = self.sas(f"blob:{container}", "rcwdl").split("?", 1)
        where = urllib.parse.urlsplit(base)
        connection = http.client.HTTPConnection(where.netloc, timeout=PATIENCE)
        headers = {"x-ms-blob-type": "BlockBlob", "user-agent": user_agent}
        connection.request("PUT", f"{where.path}/{name}?{query}", b"x", headers)
        return connection


def request(method, url, data=None, headers=None):
    """Sends a request; gives the status and the body, read as JSON if it is."""
    asked = urllib.request.Request(url, data=data, headers=headers or {}, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return answer.status, read(answer)
    except urllib.error.HTTPError as error:
        return error.code, read(error)


def read(answer):
    text = answer.read().decode()
    try:
        return json.loads(text)
    except ValueError:
        return text
