"""The races of docs/reproduce.md with the Python SDKs: each happens every time, and so does its cure.

Called with the ready file of a server and a number of rounds; prints a line for each race.
"""

import json
import sys

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from bench import Bench, at_once

with open(sys.argv[1], encoding="utf-8") as file:
    READY = json.load(file)
BENCH = Bench(READY)
BLOBS = BlobServiceClient.from_connection_string(READY["connection_string"], retry_total=0)
QUEUES = QueueServiceClient.from_connection_string(READY["connection_string"], retry_total=0)
SHARES = ShareServiceClient.from_connection_string(READY["connection_string"], retry_total=0)
BOX = BLOBS.create_container("box")


def blob(name):
    return BOX.get_blob_client(name)


def text(name):
    return blob(name).download_blob().readall().decode()


def put(name, content, **options):
    return blob(name).upload_blob(content, overwrite=True, **options)


def count_up(name, guarded):
    """Reads a counter, adds one, and writes it."""
    while True:
        read = blob(name).download_blob()
        more = str(int(read.readall()) + 1)
        guard = {"etag": read.properties.etag, "match_condition": MatchConditions.IfNotModified}
        try:
            return put(name, more, **(guard if guarded else {}))
        except ResourceModifiedError:
            assert guarded  # Another client came between: read again.


def both_count_up(name, guarded):
    put(name, "1")
    with BENCH.gate("Put Blob", f"box/{name}", times=2) as gate:
        join = at_once(*[lambda: count_up(name, guarded)] * 2)
        gate.wait(2)
        gate.release()
        assert not any(isinstance(result, Exception) for result in join())
    return text(name)


def lost_update(name):
    assert both_count_up(name, guarded=False) == "2"


def lost_update_cured(name):
    assert both_count_up(name, guarded=True) == "3"


def both_create(name, create):
    with BENCH.gate("Put Blob", f"box/{name}", times=2) as gate:
        join = at_once(create, create)
        gate.wait(2)
        gate.release()
        return [isinstance(result, ResourceExistsError) for result in join()]


def create_race(name):
    def create():
        if not blob(name).exists():
            return put(name, "mine")
        raise ResourceExistsError

    assert both_create(name, create) == [False, False]


def create_race_cured(name):
    # Without overwrite=True the SDK sends If-None-Match: *.
    refused = both_create(name, lambda: blob(name).upload_blob("mine"))
    assert sorted(refused) == [False, True]


def slow_writer(name, leased, slow):
    """A writer that is so slow that its lease runs out and another one takes its place."""
    put(leased, "first")
    first = blob(leased).acquire_lease(15)
    with BENCH.gate("Put Blob", f"box/{name}", at="received") as gate:
        join = at_once(lambda: slow(first))
        gate.wait()
        BENCH.advance(16)
        second = blob(leased).acquire_lease(15)
        put(name, "other", **({"lease": second} if name == leased else {}))
        second.release()
        gate.release()
        return join()[0]


def lease_that_ran_out(name):
    done = slow_writer(name, f"{name}.lock", lambda _: put(name, "slow"))
    assert not isinstance(done, Exception), done
    assert text(name) == "slow"


def lease_that_ran_out_cured(name):
    refused = slow_writer(name, name, lambda lease: put(name, "slow", lease=lease))
    assert isinstance(refused, HttpResponseError) and refused.status_code == 412, refused
    assert text(name) == "other"


def append_twice(name, **options):
    """Appends a line, and once more if the answer was lost."""
    blob(name).create_append_blob()
    BENCH.lose_the_answer("Append Block", f"box/{name}")
    try:
        return blob(name).append_block("line", **options)
    except HttpResponseError:
        raise
    except Exception:
        return blob(name).append_block("line", **options)


def lost_answer(name):
    append_twice(name)
    assert text(name) == "lineline"


def lost_answer_cured(name):
    try:
        append_twice(name, appendpos_condition=0)
        raise AssertionError("the second one was done too")
    except HttpResponseError as refused:
        assert refused.error_code == "AppendPositionConditionNotMet", refused
    assert text(name) == "line"


def a_message(name):
    queue = QUEUES.create_queue(name)
    queue.send_message("pay 10")
    return queue, take(queue)


def take(queue):
    return next(iter(queue.receive_messages(visibility_timeout=30)), None)


def message_twice(name):
    queue, first = a_message(name)
    assert take(queue) is None
    BENCH.advance(31)
    assert take(queue).id == first.id
    try:
        queue.delete_message(first)
        raise AssertionError("the receipt of the first consumer still counts")
    except HttpResponseError as refused:
        assert refused.error_code == "PopReceiptMismatch", refused


def message_twice_cured(name):
    queue, first = a_message(name)
    BENCH.advance(20)
    first = queue.update_message(first, visibility_timeout=30)
    BENCH.advance(20)
    assert take(queue) is None
    queue.delete_message(first)


def opened(name, share_mode):
    file = SHARES.get_share_client("docs").get_file_client(name)
    file.create_file(5)
    return file, BENCH.hold(name, access="r", share_mode=share_mode)


def delete(name):
    """Deletes a file as a program on Windows does."""
    handle = BENCH.hold(name, access="d", share_mode="rwd", delete_on_close=True)
    if handle:
        BENCH.release_hold(handle)
    return handle is not None


def deleted_while_open(name):
    file, reader = opened(name, "rwd")
    assert delete(name)
    try:
        file.download_file()
        raise AssertionError("it can be read by others")
    except HttpResponseError as refused:
        assert refused.error_code == "SMBDeletePending", refused
    BENCH.release_hold(reader)
    assert not file.exists()


def deleted_while_open_cured(name):
    file, reader = opened(name, "rw")
    assert not delete(name)
    assert file.exists()
    BENCH.release_hold(reader)
    assert delete(name) and not file.exists()


RACES = [
    (lost_update, lost_update_cured),
    (create_race, create_race_cured),
    (lease_that_ran_out, lease_that_ran_out_cured),
    (lost_answer, lost_answer_cured),
    (message_twice, message_twice_cured),
    (deleted_while_open, deleted_while_open_cured),
]


def main():
    rounds = int(sys.argv[2])
    for pair in RACES:
        for play in pair:
            for turn in range(rounds):
                play(f"{play.__name__.replace('_', '-')}{turn}")
            print(f"{play.__name__}: {rounds} of {rounds}", flush=True)


main()
