"""Programs and libraries built on Azure Storage, each as its users run it, on a running latchfs.

Usage: libraries.py READY_FILE NAME. NAME is a function of this file; its docstring says what the
function checks. The function fails with an assertion where an answer is not as expected.
"""
import concurrent.futures
import datetime
import json
import os
import subprocess
import sys
import threading

READY = json.load(open(sys.argv[1], encoding="utf-8"))
ACCOUNT, KEY, CONNECTION = READY["account"], READY["key"], READY["connection_string"]
BLOB, FILE, QUEUE = (READY["endpoints"][service] for service in ("blob", "file", "queue"))
OBJECT_STORE = {"account_name": ACCOUNT, "account_key": KEY, "endpoint": BLOB, "allow_http": "true"}
WRITERS, COMMITS = 8, 3
# As long as one range of a file may be.
LONG = bytes(range(256)) * 4 * 4096


def container(name):
    """Creates a container. Returns its client, which reads what a program wrote."""
    from azure.storage.blob import ContainerClient

    client = ContainerClient.from_connection_string(CONNECTION, name)
    client.create_container()
    return client


def delta_table(path):
    """Eight writers append to one Delta table: no row is lost and each commit has its version."""
    import pyarrow
    from deltalake import CommitProperties, DeltaTable, write_deltalake

    address = f"az://delta/{path}"

    def rows(writer):
        return pyarrow.table({"writer": [writer] * 10, "n": list(range(10))})

    write_deltalake(address, rows(0).slice(0, 0), storage_options=OBJECT_STORE)
    together = threading.Barrier(WRITERS)

    def write(writer):
        together.wait()
        for _ in range(COMMITS):
            write_deltalake(
                address,
                rows(writer),
                mode="append",
                storage_options=OBJECT_STORE,
                # A writer can lose to every commit of the others.
                commit_properties=CommitProperties(max_commit_retries=WRITERS * COMMITS),
            )

    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))

    table = DeltaTable(address, storage_options=OBJECT_STORE)
    assert table.version() == WRITERS * COMMITS, table.version()
    found = table.to_pyarrow_table().group_by("writer").aggregate([("n", "count"), ("n", "sum")])
    found = sorted(zip(*(found[name].to_pylist() for name in ("writer", "n_count", "n_sum"))))
    assert found == [(one, 10 * COMMITS, 45 * COMMITS) for one in range(WRITERS)], found
    table.optimize.compact()
    table.create_checkpoint()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    table = DeltaTable(address, storage_options=OBJECT_STORE)
    assert table.to_pyarrow_table().num_rows == 10 * COMMITS * WRITERS


def deltalake():
    """Eight concurrent writers, then compaction, a checkpoint and a vacuum."""
    container("delta")
    delta_table("tables/plain")
    delta_table("my tables/with a blank")


def obstore():
    """Conditional writes, a multipart upload, ranges, listings, copies and signed addresses."""
    import obstore
    import requests
    from obstore.exceptions import AlreadyExistsError, PreconditionError
    from obstore.store import AzureStore

    beside = container("obstore")
    store = AzureStore("obstore", config=OBJECT_STORE, client_options={"allow_http": True})
    first = obstore.put(store, "a/one", b"one", mode="create")
    try:
        obstore.put(store, "a/one", b"two", mode="create")
        raise AssertionError("the second create was not refused")
    except AlreadyExistsError:
        pass
    obstore.put(store, "a/one", b"two", mode={"e_tag": first["e_tag"]})
    try:
        obstore.put(store, "a/one", b"three", mode={"e_tag": first["e_tag"]})
        raise AssertionError("a write with an old ETag was not refused")
    except PreconditionError:
        pass
    obstore.put(store, "a/b/long", LONG * 3, use_multipart=True, chunk_size=5 << 20)
    assert beside.download_blob("a/b/long").readall() == LONG * 3
    assert obstore.get_range(store, "a/b/long", start=255, length=3) == b"\xff\x00\x01"
    obstore.copy(store, "a/one", "with blank & plus+.txt")
    obstore.rename(store, "a/b/long", "c/long")
    shown = obstore.list_with_delimiter(store)
    assert sorted(shown["common_prefixes"]) == ["a", "c"], shown
    assert [one["path"] for one in shown["objects"]] == ["with blank & plus+.txt"], shown
    # A name without escapes: object_store signs the escaped name, which the service refuses.
    signed = obstore.sign(store, "GET", "a/one", expires_in=datetime.timedelta(hours=1))
    assert requests.get(signed, timeout=60).content == b"two"
    obstore.put(store, "my folder/x", b"x")
    assert len(obstore.list(store, prefix="my folder").collect()) == 1
    obstore.delete(store, ["a/one", "c/long", "my folder/x", "with blank & plus+.txt"])
    assert list(beside.list_blob_names()) == []


def adlfs():
    """pandas writes and reads Parquet and CSV; adlfs lists, moves and deletes them."""
    import fsspec
    import pandas

    container("pandas")
    options = {"connection_string": CONNECTION}
    frame = pandas.DataFrame({"day": ["mon", "tue"] * 500, "n": range(1000)})
    days = "abfs://pandas/my data/by day"
    frame.to_parquet(days, partition_cols=["day"], storage_options=options)
    back = pandas.read_parquet(days, storage_options=options)
    assert sorted(back["n"]) == list(range(1000)) and set(back["day"]) == {"mon", "tue"}
    frame.to_csv("abfs://pandas/my data/Grüße + 1.csv", index=False, storage_options=options)
    back = pandas.read_csv("abfs://pandas/my data/Grüße + 1.csv", storage_options=options)
    assert back.equals(frame)
    files = fsspec.filesystem("abfs", **options)
    assert len(files.glob("pandas/my data/by day/day=*/*.parquet")) == 2
    files.mv("pandas/my data/Grüße + 1.csv", "pandas/moved.csv")
    with files.open("pandas/moved.csv", "rb") as opened:
        opened.seek(-9, os.SEEK_END)
        assert opened.read() == b"\ntue,999\n", opened
    assert files.info("pandas/my data/by day")["type"] == "directory"
    files.rm("pandas/my data", recursive=True)
    assert files.find("pandas") == ["pandas/moved.csv"], files.find("pandas")


def opendal_round(operator):
    """What both services of OpenDAL are asked for; `operator` starts with nothing in its root."""
    operator.write("a/long", LONG)
    operator.write("a/b/Grüße & plus+.txt", "Grüße".encode())
    operator.write("short", b"short")
    assert operator.read("a/long") == LONG
    with operator.open("a/long", "rb") as opened:
        opened.seek(255)
        assert opened.read(3) == b"\xff\x00\x01"
    assert operator.stat("a/long").content_length == len(LONG)
    assert operator.stat("a/b/").mode.is_dir()
    shown = {one.path for one in operator.list("a/")}
    # Only one of the two services lists the directory itself.
    assert shown - {"a/"} == {"a/b/", "a/long"}, shown
    operator.delete("short")
    assert not operator.exists("short")


def opendal_azblob():
    """Blocks, ranges, listings, a conditional create, a copy and a delete of a tree."""
    import opendal

    beside = container("opendal")
    operator = opendal.Operator(
        "azblob", container="opendal", endpoint=BLOB, account_name=ACCOUNT, account_key=KEY
    )
    opendal_round(operator)
    with operator.open("a/blocks", "wb") as opened:
        for _ in range(3):
            opened.write(LONG)
    assert beside.download_blob("a/blocks").readall() == LONG * 3
    operator.write("once", b"1", if_not_exists=True)
    try:
        operator.write("once", b"2", if_not_exists=True)
        raise AssertionError("the second create was not refused")
    except opendal.exceptions.ConditionNotMatch:
        pass
    operator.copy("once", "a/copy")
    assert beside.download_blob("a/copy").readall() == b"1"
    assert beside.download_blob("a/b/Grüße & plus+.txt").readall() == "Grüße".encode()
    operator.remove_all("a/")
    assert list(beside.list_blob_names()) == ["once"]


def opendal_azfile():
    """Directories, ranges, listings and a rename on a share."""
    import opendal
    from azure.storage.fileshare import ShareClient

    beside = ShareClient.from_connection_string(CONNECTION, "opendal")
    beside.create_share()
    operator = opendal.Operator(
        "azfile", share_name="opendal", endpoint=FILE, account_name=ACCOUNT, account_key=KEY
    )
    opendal_round(operator)
    operator.create_dir("new/dir/")
    operator.rename("a/b/Grüße & plus+.txt", "new/dir/renamed")
    moved = beside.get_file_client("new/dir/renamed").download_file().readall()
    assert moved == "Grüße".encode()
    for path in ("new/dir/renamed", "new/dir/", "new/", "a/long", "a/b/", "a/"):
        operator.delete(path)
    assert list(beside.list_directories_and_files()) == []


def celery_app():
    """Tasks in a queue, results in blobs."""
    import celery

    app = celery.Celery(
        "libraries",
        broker=f"azurestoragequeues://{KEY}@{QUEUE}",
        backend=f"azureblockblob://{CONNECTION}",
    )
    app.conf.update(
        broker_transport_options={"polling_interval": 0.05},
        azureblockblob_container_name="celery",
        task_default_queue="celery-tasks",
        worker_enable_remote_control=False,
    )

    @app.task(bind=True, name="square", max_retries=3)
    def square(self, n):
        if n == 7 and self.request.retries < 2:
            raise self.retry(countdown=0)
        return n * n

    return app


def celery():
    """A worker takes twenty tasks from a queue; one of them is tried three times."""
    from azure.storage.queue import QueueClient

    app = celery_app()
    words = [sys.executable, "-B", __file__, sys.argv[1], "celery_worker"]
    asked = [app.tasks["square"].delay(n) for n in range(20)]
    worker = subprocess.Popen(words)
    try:
        found = [one.get(timeout=120, interval=0.05) for one in asked]
    finally:
        worker.kill()
        worker.wait()
    assert found == [n * n for n in range(20)], found
    queue = QueueClient.from_connection_string(CONNECTION, "celery-tasks")
    assert queue.get_queue_properties().approximate_message_count == 0


def celery_worker():
    # One task at a time. If two attempts at one task ran together, celery could store the RETRY of
    # the first after the result of the second, and the task would never end.
    celery_app().worker_main(["worker", "--pool=solo", "--loglevel=WARNING"])


def event_hubs():
    """Of eight consumers that steal the same partitions at once, each partition has one owner."""
    from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore

    container("checkpoints")
    group = ("hub.example", "hub", "$Default")
    of = dict(zip(("fully_qualified_namespace", "eventhub_name", "consumer_group"), group))
    partitions = ["0", "1", "2", "3"]
    stores = [
        BlobCheckpointStore.from_connection_string(CONNECTION, "checkpoints")
        for _ in range(WRITERS)
    ]
    first = [{**of, "partition_id": one, "owner_id": "first"} for one in partitions]
    assert len(list(stores[0].claim_ownership(first))) == len(partitions)
    known = list(stores[0].list_ownership(*group))
    assert {one["owner_id"] for one in known} == {"first"}, known
    together = threading.Barrier(WRITERS)

    def steal(number):
        together.wait()
        wanted = [{**one, "owner_id": f"owner{number}"} for one in known]
        mine = stores[number].claim_ownership(wanted)
        return [(one["partition_id"], one["owner_id"]) for one in mine]

    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        won = [pair for mine in pool.map(steal, range(WRITERS)) for pair in mine]
    assert sorted(one for one, _ in won) == partitions, won
    owners = {one["partition_id"]: one["owner_id"] for one in stores[0].list_ownership(*group)}
    assert owners == dict(won), (owners, won)
    for at in (7, 8):
        checkpoint = {**of, "partition_id": "2", "sequence_number": at, "offset": str(at * 100)}
        stores[1].update_checkpoint(checkpoint)
    (found,) = stores[0].list_checkpoints(*group)
    assert (found["sequence_number"], found["offset"]) == (8, "800"), found


def default_credential():
    """DefaultAzureCredential as in production code: all that is special is in variables."""
    from azure.core.exceptions import ClientAuthenticationError
    from azure.identity import DefaultAzureCredential
    from azure.storage.blob import BlobServiceClient
    from azure.storage.queue import QueueServiceClient

    credential = DefaultAzureCredential()
    blobs = BlobServiceClient(BLOB, credential).create_container("identity-py")
    blobs.upload_blob("a", b"x")
    assert blobs.download_blob("a").readall() == b"x"
    jobs = QueueServiceClient(QUEUE, credential).create_queue("identity-py")
    jobs.send_message("one")
    (message,) = jobs.receive_messages()
    assert message.content == "one"
    # The endpoint has tokens for storage alone.
    try:
        credential.get_token("https://vault.azure.net/.default")
    except ClientAuthenticationError as error:
        assert "storage.azure.com" in str(error), error
    else:
        raise AssertionError("a token for another service")


def rust_sdk():
    """The client in `rust/` gets a SAS for everything in a container, and one that only reads."""
    from azure.storage.blob import generate_container_sas

    url = container("rust").url
    expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    signed = [
        generate_container_sas(ACCOUNT, "rust", KEY, permission=letters, expiry=expiry)
        for letters in ("racwdl", "rl")
    ]
    subprocess.run([sys.argv[3], *(f"{url}?{sas}" for sas in signed)], check=True)


if __name__ == "__main__":
    globals()[sys.argv[2]]()
    sys.stdout.flush()
    # Not by the end of the interpreter: threads of Arrow that still free Python objects would be
    # ended there in the middle of C++, which aborts the process.
    os._exit(0)
