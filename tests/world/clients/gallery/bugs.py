"""What the gallery's programs share: the list of bugs, and an SDK's client of each service."""

from azure.core import MatchConditions
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

BUGS = []
"""The programs, in the order of their numbers: each takes a server, and whether it is corrected."""

AT_ONCE = {"initial_backoff": 0, "increment_base": 0, "random_jitter_range": 0}
"""Options of an SDK's client that repeats a request at once; by default it sleeps 15 seconds."""


def bug(number, **options):
    """Enters a program into the gallery. `options` are those of the search."""

    def enter(program):
        program.number, program.options = number, options
        BUGS.append(program)
        BUGS.sort(key=lambda other: other.number)
        return program

    return enter


def blobs(connection, **options):
    """The container of the test. Repetition is off, unless the program is about it."""
    service = BlobServiceClient.from_connection_string(connection, **(options or {"retry_total": 0}))
    return service.get_container_client("box")


def queue(connection, **options):
    service = QueueServiceClient.from_connection_string(
        connection, **(options or {"retry_total": 0})
    )
    return service.get_queue_client("work")


def table(connection):
    service = TableServiceClient.from_connection_string(connection, retry_total=0)
    return service.get_table_client("Counters")


def share(connection):
    service = ShareServiceClient.from_connection_string(connection, retry_total=0)
    return service.get_share_client("share")


def text(container, name):
    return container.download_blob(name).readall().decode()


def unchanged(read):
    """The condition that what was read is still what is stored."""
    etag = read["etag"] if "etag" in read else read.metadata["etag"]
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}
