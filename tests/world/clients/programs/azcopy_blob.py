"""azcopy against the Blob service of a running latchfs: copies, resumes, lists, syncs, removes.

It knows services by their host names. Off Azure it is told: --from-to, --location.
"""
import json

from common import LONG, folder, make_tree, run, tree_of

from blobs import blobs_of, container, same_as_blobs, service, signed

ENV = {
    "AZCOPY_LOG_LOCATION": str(folder / "logs"),
    "AZCOPY_JOB_PLAN_LOCATION": str(folder / "plans"),
    "AZCOPY_DISABLE_SYSLOG": "true",
}
COMMON = ["--skip-version-check", "--output-type", "json"]
JOB = [*COMMON, "--output-level", "essential"]
UP, DOWN = ["--from-to", "LocalBlob"], ["--from-to", "BlobLocal"]
source, down = folder / "source", folder / "down"


def messages(text, kind):
    """What azcopy said in messages of a kind: JSON in JSON."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [json.loads(line["MessageContent"]) for line in lines if line["MessageType"] == kind]


def job(*words, status=0):
    """Runs a job, and gives its last account of itself."""
    [end] = messages(run(*words, *JOB, env=ENV, status=status), "EndOfJob")
    return end


def transferred(end):
    """How many blobs a job has moved; none of them may have failed."""
    assert (end["JobStatus"], end["TransfersFailed"]) == ("Completed", "0"), end
    return int(end["FileTransfers"])


def copies():
    make_tree(source)
    container("con")
    tree = tree_of(source)
    # In blocks of 1 MiB, several at once.
    end = job("copy", f"{source}/*", signed("con/up"), "--recursive", "--block-size-mb", "1", *UP)
    assert transferred(end) == len(tree)
    same_as_blobs(tree, "con", "up/")
    blocks, _ = service.get_blob_client("con", "up/long.bin").get_block_list()
    assert len(blocks) == -(-len(LONG) // (1 << 20)), len(blocks)
    end = job("copy", signed("con/up/*"), down, "--recursive", "--check-md5", "FailIfDifferent", *DOWN)
    assert transferred(end) == len(tree)
    assert tree_of(down) == tree
    container("other")
    end = job("copy", signed("con/up"), signed("other"), "--recursive", "--from-to", "BlobBlob")
    assert transferred(end) == len(tree)
    same_as_blobs(tree, "other", "up/")


def kinds():
    page = folder / "disk"
    page.write_bytes(bytes(512) + b"x" * 512 + bytes(1024))
    transferred(job("copy", page, signed("con/disk"), "--blob-type", "PageBlob", *UP))
    blob = service.get_blob_client("con", "disk")
    assert blob.get_blob_properties().blob_type == "PageBlob"
    assert blob.download_blob().readall() == page.read_bytes()
    transferred(job("copy", page, signed("con/log"), "--blob-type", "AppendBlob", *UP))
    assert service.get_blob_client("con", "log").download_blob().readall() == page.read_bytes()
    blob.delete_blob()
    service.get_blob_client("con", "log").delete_blob()


def lists():
    text = run("list", signed("con/up"), "--location", "Blob", "--machine-readable", *COMMON, env=ENV)
    shown = {item["Path"]: item["ContentLength"] for item in messages(text, "ListObject")}
    assert shown.keys() == tree_of(source).keys(), shown
    assert shown["a/b/c/deep.txt"] == "4", shown


def resumes():
    """A job that fails because of a lease goes on once the lease is gone."""
    blob = service.get_blob_client("con", "up/empty")
    lease = blob.acquire_lease()
    words = ["copy", f"{source}/*", signed("con/up"), "--recursive", *UP]
    end = job(*words, status=1)
    assert (end["JobStatus"], end["TransfersFailed"]) == ("CompletedWithErrors", "1"), end
    lease.release()
    sas = signed("con").split("?")[1]
    again = job("jobs", "resume", end["JobID"], "--destination-sas", sas)
    assert again["TransfersFailed"] == "0", again
    same_as_blobs(tree_of(source), "con", "up/")


def syncs():
    (source / "a/b/shallow.txt").unlink()
    (source / "a/b/c/deep.txt").write_bytes(b"deeper")
    (source / "new").write_bytes(b"new")
    options = ["--delete-destination", "true"]
    job("sync", source, signed("con/up"), *options, *UP)
    same_as_blobs(tree_of(source), "con", "up/")
    service.get_blob_client("con", "up/new").upload_blob(b"newer", overwrite=True)
    job("sync", signed("con/up"), source, *options, *DOWN)
    assert (source / "new").read_bytes() == b"newer"


def refusals():
    end = job("copy", source / "new", signed("con/up/new", "r"), *UP, status=1)
    assert end["TransfersCompleted"] == "0", end
    assert blobs_of("con", "up/new") == {"": b"newer"}


def removes():
    end = job("remove", signed("con/up/a/b"), "--recursive", "--from-to", "BlobTrash")
    assert (end["JobStatus"], end["TransfersFailed"]) == ("Completed", "0"), end
    assert "a/b/c/deep.txt" not in blobs_of("con", "up/")
    job("remove", signed("con/up"), "--recursive", "--from-to", "BlobTrash")
    assert blobs_of("con") == {}, blobs_of("con").keys()


copies()
kinds()
lists()
resumes()
syncs()
refusals()
removes()
print("met")
