"""Takes the pictures of docs/reproduce.md: pictures.py READY_FILE LATCHFS FOLDER.

Stages a race of two clients, three refusals, open files and locks, on a server with a mount. Rare colours
are replaced by the nearest frequent one, which keeps the files small.
"""

import collections
import http.client
import pathlib
import shutil
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
import zlib

from playwright.sync_api import sync_playwright

from server import Server

COLOURS_MAX = 256

# How long requests wait at the gate, in seconds.
GATED = 600

LOCKER = """import fcntl, sys, time
file = open('app.log', 'r+b' if sys.argv[1] == 'w' else 'rb')
for way, start, length in [range.split() for range in sys.argv[2].split(',')]:
    fcntl.lockf(file, fcntl.LOCK_EX if way == 'x' else fcntl.LOCK_SH, int(length), int(start))
print(flush=True)
time.sleep(600)
"""


class Client:
    """A client with one connection, a user agent, and a SAS of the container."""

    def __init__(self, server, user_agent):
        base, self._query = server.sas("blob:docs", "rcwdl").split("?", 1)
        where = urllib.parse.urlsplit(base)
        self._path, self._user_agent = where.path, user_agent
        self._connection = http.client.HTTPConnection(where.netloc, timeout=GATED)

    def ask(self, method, name, **headers):
        headers = {key.replace("_", "-"): value for key, value in headers.items()}
        headers |= {"user-agent": self._user_agent, "x-ms-version": "2026-02-06"}
        if method == "PUT" and "x-ms-lease-action" not in headers:
            headers["x-ms-blob-type"] = "BlockBlob"
        query = self._query + ("&comp=lease" if "x-ms-lease-action" in headers else "")
        body = b"{}" if method == "PUT" and "x-ms-blob-type" in headers else None
        self._connection.request(method, f"{self._path}/{name}?{query}", body, headers)
        answer = self._connection.getresponse()
        answer.read()
        return answer


def stage(server, mount):
    """Returns the programs that hold files open."""
    for name, content in [("app.log", "started\n" * 2000), ("q3.xlsx", "figures")]:
        (mount / name).write_text(content)
    hold = subprocess.Popen(
        [server.latchfs, "hold", str(mount / "q3.xlsx"), "--access", "rw", "--for", "10m"],
        stdout=subprocess.PIPE,
    )
    lockers = [("w", "x 0 4096,s 8000 1000"), ("r", "s 8200 500")]
    lockers = [
        subprocess.Popen([shutil.which("python3"), "-c", LOCKER, *one], cwd=mount, stdout=subprocess.PIPE)
        for one in lockers
    ]
    sqlite = subprocess.Popen(["sqlite3", "orders.db"], cwd=mount, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    sqlite.stdin.write(b"create table t(a); begin immediate; insert into t values (1); select 'ready';\n")
    sqlite.stdin.flush()
    for one in [hold, *lockers, sqlite]:
        one.stdout.readline()
    tail = subprocess.Popen(["tail", "-f", "app.log"], cwd=mount, stdout=subprocess.DEVNULL)
    server.run("mk", "blob:docs")
    server.run("mk", "queue:jobs")
    server.run("put", "queue:jobs", stdin="send the mail")
    server.run("get", "queue:jobs", "--hide", "600")
    return [hold, *lockers, sqlite, tail]


def race(server, mount):
    python = Client(server, "azsdk-python-storage-blob/12.31.1")
    dotnet = Client(server, "azsdk-net-Storage.Blobs/12.26.0")
    old = dotnet.ask("PUT", "plan.json").headers["etag"]
    dotnet.ask("PUT", "plan.json")
    assert python.ask("PUT", "plan.json", if_match=old).status == 412
    python.ask("PUT", "todo.json")
    python.ask("PUT", "plan.json", x_ms_lease_action="acquire", x_ms_lease_duration="-1")
    assert dotnet.ask("PUT", "plan.json").status == 412
    assert subprocess.run(["cat", "q3.xlsx"], cwd=mount, capture_output=True).returncode == 1
    python.ask("GET", "todo.json")
    gate = {"operation": "Put Blob", "path": "docs/todo.json", "limit_ms": GATED * 1000}
    server.do("POST", "gates", gate, "test_race.py")
    for count, client in enumerate([python, dotnet], 1):
        if client is dotnet:
            client.ask("GET", "todo.json")
        threading.Thread(target=client.ask, args=("PUT", "todo.json"), daemon=True).start()
        server.ask(f"gates/1/wait?count={count}&timeout_ms=20000")


def main(ready_file, latchfs, folder):
    server, folder = Server(ready_file, latchfs), pathlib.Path(folder)
    server.latchfs = latchfs
    mount = pathlib.Path(next(iter(server.ready["mounts"].values())))
    programs = stage(server, mount)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        page.goto(server.admin)
        page.locator("#link", has_text="Live").wait_for()
        page.get_by_role("button", name="Clear").click()
        race(server, mount)
        page.locator("text=stopped at gate").nth(1).wait_for()
        # The lists are fetched once a second.
        time.sleep(1.5)
        take(page, folder / "page-light.png")
        page.emulate_media(color_scheme="dark")
        page.locator("#section-handles > summary").click()
        take(page, folder / "page-dark.png")
        browser.close()
    for one in programs:
        one.kill()
        one.wait()


def take(page, path):
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    path.write_bytes(reduced(page.screenshot()))


def reduced(png):
    """The picture with at most COLOURS_MAX colours."""
    at, parts = 8, collections.defaultdict(bytes)
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        parts[kind] += png[at + 8 : at + 8 + length]
        at += length + 12
    width, height, depth, colours = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    assert depth == 8 and colours in (2, 6)
    rows = unfiltered(zlib.decompress(parts[b"IDAT"]), width, height, 3 if colours == 2 else 4)
    counts = collections.Counter(pixel for row in rows for pixel in row)
    palette = [pixel for pixel, _ in counts.most_common(COLOURS_MAX)]

    def nearest(pixel):
        return min(range(len(palette)), key=lambda n: sum((a - b) ** 2 for a, b in zip(palette[n], pixel)))

    number = {pixel: nearest(pixel) for pixel in counts}
    data = b"".join(b"\0" + bytes(number[pixel] for pixel in row) for row in rows)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", b"".join(bytes(pixel) for pixel in palette)),
        (b"IDAT", zlib.compress(data, 9)),
        (b"IEND", b""),
    ]
    return png[:8] + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def unfiltered(data, width, height, size):
    """The rows of a PNG as tuples of red, green and blue."""
    rows, above = [], bytearray(width * size)
    for y in range(height):
        start = y * (width * size + 1)
        way, row = data[start], bytearray(data[start + 1 : start + 1 + width * size])
        for x in range(len(row)):
            left, up, corner = (row[x - size], above[x], above[x - size]) if x >= size else (0, above[x], 0)
            row[x] = (row[x] + predicted(way, left, up, corner)) & 255
        rows.append([tuple(row[x : x + 3]) for x in range(0, len(row), size)])
        above = row
    return rows


def predicted(way, left, up, corner):
    if way == 4:
        guess = left + up - corner
        return min((left, up, corner), key=lambda near: abs(guess - near))
    return (0, left, up, (left + up) // 2)[way]


if __name__ == "__main__":
    main(*sys.argv[1:])
