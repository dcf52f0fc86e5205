"""Bugs of programs that use blobs: numbers 1 to 4, 6, 7, 11 and 12 of docs/explore.md."""

import json

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError
from azure.core.exceptions import ResourceNotFoundError

from bugs import AT_ONCE, blobs, bug, text, unchanged


def new_box(latchfs, **content):
    box = blobs(latchfs.connection_string)
    box.create_container()
    for name, data in content.items():
        box.upload_blob(name, data)
    return box


@bug(1)
def laundered_etag(latchfs, good):
    """Unique numbers: the content and the ETag of the condition come from different requests."""
    new_box(latchfs, next="0")

    def take(connection):
        blob = blobs(connection).get_blob_client("next")
        while True:
            read = blob.download_blob()
            number = int(read.readall())
            seen = read.properties if good else blob.get_blob_properties()
            try:
                blob.upload_blob(str(number + 1), overwrite=True, **unchanged(seen))
                return number
            except ResourceModifiedError:
                pass

    with latchfs.clients() as c:
        taken = [c.run(name, take) for name in "AB"]
    assert taken[0].result() != taken[1].result()


@bug(2)
def refused_by_a_lease(latchfs, good):
    """Who creates the marker is the leader: a marker that is leased answers 412 and not 409."""
    new_box(latchfs)

    def lead(connection):
        blob = blobs(connection).get_blob_client("marker")
        try:
            blob.upload_blob(b"", overwrite=False)
        except ResourceExistsError:
            return False
        except HttpResponseError as refused:
            if not good or refused.error_code != "LeaseIdMissing":
                raise
            return False
        blob.acquire_lease()
        return True

    with latchfs.clients() as c:
        leads = [c.run(name, lead) for name in "AB"]
    assert sorted(one.result() for one in leads) == [False, True]


@bug(3)
def check_then_create(latchfs, good):
    """Looks whether the blob is there, and creates it if not."""
    box = new_box(latchfs)

    def create(connection, name):
        blob = blobs(connection).get_blob_client("owner")
        if good:
            try:
                blob.upload_blob(name, overwrite=False)
                return True
            except ResourceExistsError:
                return False
        if blob.exists():
            return False
        blob.upload_blob(name, overwrite=True)
        return True

    with latchfs.clients() as c:
        created = {name: c.run(name, create, name) for name in "AB"}
    assert [name for name in "AB" if created[name].result()] == [text(box, "owner")]


@bug(4)
def registry(latchfs, good):
    """A list in one blob, to which each client adds itself."""
    box = new_box(latchfs, registry="[]")

    def register(connection, name):
        blob = blobs(connection).get_blob_client("registry")
        while True:
            read = blob.download_blob()
            names = json.dumps([*json.loads(read.readall()), name])
            guard = unchanged(read.properties) if good else {}
            try:
                return blob.upload_blob(names, overwrite=True, **guard)
            except ResourceModifiedError:
                pass

    with latchfs.clients() as c:
        for name in "AB":
            c.run(name, register, name)
    assert sorted(json.loads(text(box, "registry"))) == ["A", "B"]


@bug(6, drops=1)
def conflict_with_itself(latchfs, good):
    """The answer is lost, the SDK repeats the request, and meets what its first attempt made."""
    box = new_box(latchfs)

    def claim(connection):
        blob = blobs(connection, **AT_ONCE).get_blob_client("claim")
        try:
            blob.upload_blob(b"A", overwrite=False)
            return True
        except ResourceExistsError:
            return good and blob.download_blob().readall() == b"A"

    with latchfs.clients() as c:
        claimed = c.run("A", claim)
    assert claimed.result() == (text(box, "claim") == "A")


@bug(7, advance=[16])
def lost_lease(latchfs, good):
    """A lease of one blob is taken for the right to write another one, for as long as it takes."""
    box = new_box(latchfs, lock=b"", count="0")

    def count_up(connection):
        box = blobs(connection)
        try:
            # It ends by itself: the next holder waits for that.
            lease = box.get_blob_client("count" if good else "lock").acquire_lease(15)
        except ResourceExistsError:
            return 0
        number = int(text(box, "count")) + 1
        try:
            own = {"lease": lease} if good else {}
            box.upload_blob("count", str(number), overwrite=True, **own)
            return 1
        except HttpResponseError as refused:
            if refused.status_code != 412:
                raise
            return 0

    with latchfs.clients() as c:
        counted = [c.run(name, count_up) for name in "AB"]
    assert int(text(box, "count")) == sum(one.result() for one in counted)


@bug(11)
def torn_transfer(latchfs, good):
    """Money goes from one blob to another one, and a reader sees the one before, the other after."""
    both = json.dumps({"a": 100, "b": 0})
    new_box(latchfs, **({"both": both} if good else {"a": "100", "b": "0"}))

    def transfer(connection):
        box = blobs(connection)
        if good:
            accounts = json.loads(text(box, "both"))
            moved = {"a": accounts["a"] - 10, "b": accounts["b"] + 10}
            box.upload_blob("both", json.dumps(moved), overwrite=True)
            return
        a, b = int(text(box, "a")), int(text(box, "b"))
        box.upload_blob("a", str(a - 10), overwrite=True)
        box.upload_blob("b", str(b + 10), overwrite=True)

    def total(connection):
        box = blobs(connection)
        if good:
            return sum(json.loads(text(box, "both")).values())
        return int(text(box, "a")) + int(text(box, "b"))

    with latchfs.clients() as c:
        c.run("A", transfer)
        seen = c.run("B", total)
    assert seen.result() == 100


@bug(12)
def published_empty(latchfs, good):
    """A blob is created empty and filled by a second request."""
    new_box(latchfs)

    def publish(connection):
        blob = blobs(connection).get_blob_client("table.json")
        if not good:
            blob.upload_blob(b"", overwrite=True)
        blob.upload_blob(b"{}", overwrite=True)

    def read(connection):
        try:
            return text(blobs(connection), "table.json")
        except ResourceNotFoundError:
            return None

    with latchfs.clients() as c:
        c.run("A", publish)
        seen = c.run("B", read)
    assert seen.result() in (None, "{}")
