"""Five bugs in the order that loses data, played step by step by two clients with keys: the report has
an error of the rule. Their cures in the same order have none. Prints `met` at the end.
"""

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, ResourceExistsError, ResourceModifiedError
from azure.data.tables import TableClient, UpdateMode
from azure.storage.blob import BlobClient, ContainerClient
from azure.storage.queue import QueueClient

from latchfs import Server


def blobs(server, name):
    for client in "AB":
        yield BlobClient.from_connection_string(server.client(client), "box", name, retry_total=0)


def unchanged(etag):
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


def laundered_etag(server, good):
    a, b = blobs(server, "next")
    a.upload_blob("0")
    read = a.download_blob()
    b.upload_blob("1", overwrite=True)
    etag = read.properties.etag if good else a.get_blob_properties().etag
    try:
        a.upload_blob("1", overwrite=True, **unchanged(etag))
        assert not good
    except ResourceModifiedError:
        assert good


def check_then_create(server, good):
    a, b = blobs(server, "owner")
    assert not a.exists()
    b.upload_blob("B", overwrite=not good)
    try:
        a.upload_blob("A", overwrite=not good)
        assert not good
    except ResourceExistsError:
        assert good


def registry(server, good):
    a, b = blobs(server, "registry")
    a.upload_blob("[]")
    reads = [one.download_blob() for one in (a, b)]
    for one, read in zip((b, a), reads[::-1]):
        guard = unchanged(read.properties.etag) if good else {}
        try:
            one.upload_blob("[1]", overwrite=True, **guard)
        except ResourceModifiedError:
            assert good


def message_twice(server, good):
    work = QueueClient.from_connection_string(server.client("A"), "work", retry_total=0)
    work.create_queue()
    server.fault("Put Message", drop="after", times=1)
    try:
        work.send_message("pay 10")
    except AzureError:
        # The cure looks whether the first attempt was done.
        if not good or not list(work.peek_messages()):
            work.send_message("pay 10")


def counter(server, good):
    a, b = (
        TableClient.from_connection_string(server.client(name), "Counters", retry_total=0)
        for name in "AB"
    )
    a.create_table()
    a.create_entity({"PartitionKey": "p", "RowKey": "r", "N": 0})
    reads = [one.get_entity("p", "r") for one in (a, b)]
    for one, read in zip((b, a), reads[::-1]):
        more = {"PartitionKey": "p", "RowKey": "r", "N": read["N"] + 1}
        guard = unchanged(read.metadata["etag"]) if good else {}
        try:
            one.update_entity(more, mode=UpdateMode.MERGE, **guard)
        except ResourceModifiedError:
            assert good


BUGS = {
    laundered_etag: "laundered-etag",
    check_then_create: "check-then-create",
    registry: "lost-update",
    message_twice: "blind-retry",
    counter: "lost-update",
}


def main():
    with Server() as server:
        for bug, rule in BUGS.items():
            for good in (False, True):
                ContainerClient.from_connection_string(
                    server.connection_string, "box"
                ).create_container()
                mark = f"{bug.__name__}, {good}"
                server.mark(mark)
                bug(server, good)
                found = server.report(since=mark, level="error")["findings"]
                rules = [one["rule"] for one in found]
                assert rules == ([] if good else [rule]), (mark, found)
                server.reset()
    print("met")


main()
