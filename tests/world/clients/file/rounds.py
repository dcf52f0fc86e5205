"""Every public method of the official Python SDK against a running latchfs.

Usage: rounds.py READY_FILE LATCHFS sync|aio. Prints the face when all is well. Fails with an
assertion where an answer is not as expected, and with a list where the table of methods, the SDK
and what the rounds called differ.
"""
import asyncio
import contextlib
import json
import logging
import sys
import time
import warnings

import building
import content
import copies
import directories
import files
import leases
import methods
import mounted
import service
import shares
import signatures
from faces import Face

# The service first: it lists the shares there are.
ROUNDS = (
    service,
    shares,
    directories,
    files,
    content,
    leases,
    copies,
    building,
    mounted,
    signatures,
)
# A refusal that is tried again looks like a hang.
ONCE = {"retry_total": 0}


class Stage:
    """What the rounds play on."""

    def __init__(self, ready, latchfs, face):
        self.face, self.latchfs = face, latchfs
        self.account, self.key = ready["account"], ready["key"]
        self.endpoint, self.connection = ready["endpoint"], ready["connection_string"]
        self.mount = ready["mounts"]["share"]
        self.waived = set()
        by_string = face.ShareServiceClient.from_connection_string
        self.service = by_string(self.connection, **ONCE)
        # The first letter of the key is another.
        self.stranger = by_string(self.connection.replace("AccountKey=E", "AccountKey=F"), **ONCE)

    @contextlib.asynccontextmanager
    async def opened(self, name, *args, **kwargs):
        """A client by its constructor, closed again."""
        client = getattr(self.face, name)(self.endpoint, *args, **kwargs, **ONCE)
        try:
            yield client
        finally:
            await client.close()

    def waive(self, method, why):
        """A method of a file that cannot succeed on this machine."""
        print(f"SKIPPED {method}: {why}", file=sys.stderr)
        self.waived.add(("ShareFileClient", method))


async def main(ready, latchfs, name):
    with open(ready, encoding="utf-8") as file:
        stage = Stage(json.load(file), latchfs, Face(name))
    try:
        for part in ROUNDS:
            start = time.monotonic()
            await part.play(stage)
            print(f"{part.__name__}: {time.monotonic() - start:.2f} s", file=sys.stderr)
    finally:
        await stage.service.close()
        await stage.stranger.close()
    found = list(methods.differences(stage.face, stage.waived))
    if found:
        sys.exit("\n".join(found))
    print(name)


# The SDK keeps methods that it calls deprecated, and logs that an answer to HEAD has no body.
warnings.simplefilter("ignore", DeprecationWarning)
logging.getLogger("azure").setLevel(logging.ERROR)
asyncio.run(main(*sys.argv[1:]))
