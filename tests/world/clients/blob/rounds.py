"""Every public method of the official Python SDK of blobs against a running latchfs.

Usage: rounds.py FACTS sync|aio; FACTS is JSON: account, key, endpoint, connection_string, and the
endpoint `versioned` of a second server, which keeps versions and leaves copies pending. Prints the
face when all is well. Fails with an assertion where an answer is not as expected, and with a list
where the table of methods, the SDK and what the rounds called differ.
"""

import asyncio
import json
import logging
import pathlib
import sys
import time
import warnings

# How the two faces of an SDK are called is written beside the Queue service's rounds.
sys.path.append(str(pathlib.Path(__file__).parent.parent / "queue"))

import building
import containers
import content
import copies
import leases
import pages
import service
import signatures
import states
import tags
from asserting import HOUR, now
from azure.storage.blob import BlobSasPermissions
from faces import Face
from library import BLOBS, TABLE
from methods import differences

ROUNDS = (
    service,
    containers,
    content,
    pages,
    leases,
    states,
    copies,
    tags,
    building,
    signatures,
)
# A refusal that is tried again looks like a hang.
ONCE = {"retry_total": 0}


class Stage:
    """What the rounds play on."""

    def __init__(self, facts, face):
        self.face = face
        self.account, self.key = facts["account"], facts["key"]
        self.endpoint, self.connection = facts["endpoint"], facts["connection_string"]
        by_string = face.BlobServiceClient.from_connection_string
        self.service = by_string(self.connection, **ONCE)
        # The first letter of the key is another.
        self.stranger = by_string(self.connection.replace("AccountKey=E", "AccountKey=F"), **ONCE)
        self.versioned = face.BlobServiceClient(facts["versioned"], self.key, **ONCE)

    def by(self, credential, **more):
        """A service client by its constructor."""
        return self.face.BlobServiceClient(self.endpoint, credential, **ONCE, **more)

    def readable(self, blob):
        """The address of a blob as the source of a copy, with the right to read it."""
        sas = self.face.generate_blob_sas(
            self.account,
            blob.container_name,
            blob.blob_name,
            account_key=self.key,
            permission=BlobSasPermissions(read=True),
            expiry=now() + HOUR,
        )
        return f"{blob.url}?{sas}"


async def main(facts, name):
    stage = Stage(json.loads(facts), Face(BLOBS, name))
    try:
        for part in ROUNDS:
            start = time.monotonic()
            await part.play(stage)
            print(f"{part.__name__}: {time.monotonic() - start:.2f} s", file=sys.stderr)
    finally:
        for client in (stage.service, stage.stranger, stage.versioned):
            await client.close()
    found = list(differences(stage.face, TABLE))
    if found:
        sys.exit("\n".join(found))
    print(name)


# The SDK logs that an answer to HEAD has no body.
warnings.simplefilter("ignore", DeprecationWarning)
logging.getLogger("azure").setLevel(logging.ERROR)
asyncio.run(main(*sys.argv[1:]))
