"""Clients of each form, explored: coroutines of one loop, and programs on a mount against REST.

Called with the forms to try; prints a line for each. Threads are what the gallery has.
"""

import asyncio
import sys

from azure.storage.blob.aio import BlobServiceClient

from blobs import new_box
from bugs import share, text
from latchfs import Server


def coroutines(server):
    """Two coroutines of one loop count up: on one thread, each waits while the other goes on."""

    async def count_up(connection):
        async with BlobServiceClient.from_connection_string(connection, retry_total=0) as service:
            blob = service.get_blob_client("box", "count")
            number = int(await (await blob.download_blob()).readall())
            await asyncio.sleep(0)
            await blob.upload_blob(str(number + 1), overwrite=True)

    def test():
        box = new_box(server, count="0")
        with server.clients() as c:
            for name in "AB":
                c.run(name, count_up)
        assert text(box, "count") == "2"

    return server.explore(test)


def mount(server):
    """A program reads a file on the mount that is replaced over REST, which takes two requests."""

    def publish(connection):
        share(connection).get_file_client("a.txt").upload_file(b"after")

    def read(_):
        return (server.mount / "a.txt").read_bytes()

    def test():
        server.put("a.txt", b"before")
        with server.clients() as c:
            c.run("A", publish)
            seen = c.run("B", read)
        assert seen.result() in (b"before", b"after")

    return server.explore(test)


FORMS = {"coroutines": {}, "mount": {"mount": True}}


def main():
    for name in sys.argv[1:]:
        with Server(**FORMS[name]) as server:
            found = globals()[name](server)
            assert found.failure, found
            print(f"{name}: {found}", flush=True)
    print("played", flush=True)


main()
