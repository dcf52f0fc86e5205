"""Every public method of the official Python SDK of queues against a running latchfs.

Usage: rounds.py FACTS sync|aio; FACTS is JSON: account, key, endpoint, connection string. Prints the face when all is well. Fails with an assertion
where an answer is not as expected, and with a list where the table of methods, the SDK and what
the rounds called differ.
"""
import asyncio
import contextlib
import json
import logging
import sys
import time
import warnings

import building
import messages
import queues
import service
import signatures
from faces import Face
from library import QUEUES, TABLE
from methods import differences

ROUNDS = (service, queues, messages, building, signatures)
# A refusal that is tried again looks like a hang.
ONCE = {"retry_total": 0}


class Stage:
    """What the rounds play on."""

    def __init__(self, facts, face):
        self.face = face
        self.account, self.key = facts["account"], facts["key"]
        self.endpoint, self.connection = facts["endpoint"], facts["connection_string"]
        by_string = face.QueueServiceClient.from_connection_string
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

    def mirrored(self, key):
        """A client that knows the secondary of the account."""
        host = f"{self.endpoint.removeprefix('http://')}-secondary"
        return self.opened("QueueServiceClient", credential=key, secondary_hostname=host)


async def main(facts, name):
    stage = Stage(json.loads(facts), Face(QUEUES, name))
    try:
        for part in ROUNDS:
            start = time.monotonic()
            await part.play(stage)
            print(f"{part.__name__}: {time.monotonic() - start:.2f} s", file=sys.stderr)
    finally:
        await stage.service.close()
        await stage.stranger.close()
    found = list(differences(stage.face, TABLE))
    if found:
        sys.exit("\n".join(found))
    print(name)


# The SDK logs that an answer to HEAD has no body.
warnings.simplefilter("ignore", DeprecationWarning)
logging.getLogger("azure").setLevel(logging.ERROR)
asyncio.run(main(*sys.argv[1:]))
