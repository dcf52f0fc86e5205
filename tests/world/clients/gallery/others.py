"""Bugs of programs that use queues, tables and files: numbers 5, 8, 9, 10 and 13 of docs/explore.md."""

from azure.core.exceptions import HttpResponseError, ResourceModifiedError, ResourceNotFoundError
from azure.core.exceptions import ServiceResponseError
from azure.data.tables import UpdateMode

from bugs import AT_ONCE, bug, queue, share, table, unchanged


@bug(5, drops=1)
def message_twice(latchfs, good):
    """The answer to Put Message is lost, and the SDK repeats it."""
    work = queue(latchfs.connection_string)
    work.create_queue()

    def order(connection):
        if not good:
            return queue(connection, **AT_ONCE).send_message("order 7")
        # Only what may be repeated is repeated by the SDK.
        look = queue(connection, **AT_ONCE)
        while "order 7" not in [message.content for message in look.peek_messages(32)]:
            try:
                queue(connection).send_message("order 7")
            except ServiceResponseError:
                pass  # It may be there: look first.

    with latchfs.clients() as c:
        c.run("A", order)
    assert len(work.peek_messages(32)) == 1


@bug(8, advance=[31])
def past_visibility(latchfs, good):
    """The work takes longer than its message is hidden, and somebody else does it too."""
    work = queue(latchfs.connection_string)
    work.create_queue()
    work.send_message("pay 10")
    done = []

    def consume(connection):
        mine = queue(connection)
        for message in mine.receive_messages(max_messages=1, visibility_timeout=30):
            done.append(message.id)
            try:
                mine.delete_message(message)
            except HttpResponseError as gone:
                if not good or gone.error_code not in ("MessageNotFound", "PopReceiptMismatch"):
                    raise
            return

    with latchfs.clients() as c:
        for name in "AB":
            c.run(name, consume)
    # The corrected program's work may be done twice: it is known by the message.
    assert len(set(done) if good else done) == 1


@bug(9)
def table_counter(latchfs, good):
    """A counter in a row: without a condition of its own, the SDK sends `If-Match: *`."""
    counters = table(latchfs.connection_string)
    counters.create_table()
    counters.create_entity({"PartitionKey": "p", "RowKey": "r", "Count": 0})

    def count_up(connection):
        mine = table(connection)
        while True:
            row = mine.get_entity("p", "r")
            guard = unchanged(row) if good else {}
            row["Count"] += 1
            try:
                return mine.update_entity(row, mode=UpdateMode.REPLACE, **guard)
            except ResourceModifiedError:
                pass

    with latchfs.clients() as c:
        for name in "AB":
            c.run(name, count_up)
    assert counters.get_entity("p", "r")["Count"] == 2


@bug(10)
def rename_of_a_held_file(latchfs, good):
    """A report is replaced by a rename, while a reader on another machine has it open."""
    files = share(latchfs.connection_string)
    for name in ("report", "report.new"):
        files.get_file_client(name).upload_file(name.encode())

    def read(_):
        with latchfs.hold("report", share="r", client="A"):
            latchfs.step("A", "close", "file:share/report")

    def publish(connection):
        new = share(connection).get_file_client("report.new")
        while True:
            try:
                return new.rename_file("report", overwrite=True)
            except HttpResponseError as refused:
                if not good or refused.error_code != "SharingViolation":
                    raise

    with latchfs.clients() as c:
        c.run("A", read)
        c.run("B", publish)
    assert files.get_file_client("report").download_file().readall() == b"report.new"


@bug(13)
def two_requests_of_an_upload(latchfs, good):
    """`upload_file` creates a file of zeros and fills it: a reader in between gets the zeros."""

    def publish(connection):
        files = share(connection)
        files.get_file_client("new" if good else "a.txt").upload_file(b"content")
        if good:
            files.get_file_client("new").rename_file("a.txt")

    def read(connection):
        try:
            return share(connection).get_file_client("a.txt").download_file().readall()
        except ResourceNotFoundError:
            return None

    with latchfs.clients() as c:
        c.run("A", publish)
        seen = c.run("B", read)
    assert seen.result() in (None, b"content")
