"""The test bench of a server, through its HTTP API: gates, faults, the clock, holds."""

import json
import threading
import urllib.error
import urllib.request


class Bench:
    def __init__(self, ready):
        self.admin = ready["admin"]
        self.token = ready.get("admin_token")

    def call(self, method, path, body=None):
        """A call; its answer, or the status and the error as an exception."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.admin + "/api/v1" + path, data, method=method)
        request.add_header("x-latchfs-client", "races.py")
        request.add_header("content-type", "application/json")
        if self.token:
            request.add_header("authorization", "Bearer " + self.token)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def gate(self, operation, path, times=1, at="received"):
        wanted = {"operation": operation, "path": path, "times": times, "at": at}
        return Gate(self, self.call("POST", "/gates", wanted)["gate"])

    def lose_the_answer(self, operation, path):
        wanted = {"operation": operation, "path": path, "times": 1, "action": "drop_after"}
        return self.call("POST", "/faults", wanted)["fault"]

    def advance(self, seconds):
        self.call("POST", "/clock", {"advance_ms": seconds * 1000})

    def hold(self, path, **options):
        """An open of a file; its number, or None if another open is in the way."""
        try:
            return self.call("POST", "/holds", {"share": "docs", "path": path, **options})["handle"]
        except urllib.error.HTTPError as refused:
            assert refused.code == 409, refused.read()
            return None

    def release_hold(self, handle):
        self.call("DELETE", f"/holds/{handle}")


class Gate:
    def __init__(self, bench, number):
        self.bench, self.number = bench, number

    def wait(self, count=1):
        return self.bench.call("GET", f"/gates/{self.number}/wait?count={count}")["waiting"]

    def release(self):
        return self.bench.call("POST", f"/gates/{self.number}/release", {})["released"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.bench.call("DELETE", f"/gates/{self.number}")


def at_once(*calls):
    """Starts calls at the same time. What it gives back waits for their results."""
    results = [None] * len(calls)

    def run(index, call):
        try:
            results[index] = call()
        except Exception as error:  # A refusal is a result.
            results[index] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()

    def join():
        for thread in threads:
            thread.join()
        return results

    return join
