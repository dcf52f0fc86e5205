"""azcopy against a running latchfs: copies up and down, lists, syncs and removes.

It knows services by their host names. Off Azure it is told: --from-to, --location.
"""
import datetime
import json
import os

from azure.storage.fileshare import generate_account_sas

from common import folder, make_tree, mount, ready, run, same, tree_of

ENV = {
    "AZCOPY_LOG_LOCATION": str(folder / "logs"),
    "AZCOPY_JOB_PLAN_LOCATION": str(folder / "plans"),
    "AZCOPY_DISABLE_SYSLOG": "true",
}
COMMON = ["--skip-version-check", "--output-type", "json"]
JOB = [*COMMON, "--output-level", "essential"]
UP, DOWN = ["--from-to", "LocalFile"], ["--from-to", "FileLocal"]
source, down = folder / "source", folder / "down"


def url(path, permission="rwdlc"):
    """What azcopy is given: the path with a signature."""
    hour = datetime.timedelta(hours=1)
    expiry = datetime.datetime.now(datetime.timezone.utc) + hour
    sas = generate_account_sas(
        ready["account"], ready["key"], "sco", permission=permission, expiry=expiry
    )
    return f"{ready['endpoint']}/share/{path}?{sas}"


def messages(text, kind):
    """What azcopy said in messages of a kind: JSON in JSON."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [json.loads(line["MessageContent"]) for line in lines if line["MessageType"] == kind]


def job(*words, status=0):
    """Runs a job, and gives its last account of itself."""
    [end] = messages(run(*words, *JOB, env=ENV, status=status), "EndOfJob")
    return end


def transferred(end):
    """How many files and folders a job has moved; none of them may have failed."""
    assert (end["JobStatus"], end["TransfersFailed"]) == ("Completed", "0"), end
    return int(end["FileTransfers"])


def listed(path):
    text = run("list", url(path), "--location", "File", "--machine-readable", *COMMON, env=ENV)
    shown = messages(text, "ListObject")
    return {item["Path"]: item["ContentLength"] for item in shown}


def copies():
    make_tree(source)
    names = tree_of(source).keys()
    assert transferred(job("copy", f"{source}/*", url("up"), "--recursive", *UP)) == len(names)
    same(source, mount / "up")
    end = job("copy", url("up/*"), down, "--recursive", "--preserve-last-modified-time", *DOWN)
    assert transferred(end) == len(names)
    same(source, down)
    # The time it keeps is Last-Modified: the change time, in whole seconds.
    for name in names:
        assert (down / name).stat().st_mtime == int((mount / "up" / name).stat().st_ctime), name


def lists():
    shown = listed("up")
    assert shown.keys() >= tree_of(source).keys(), shown
    assert shown["a/b/c/deep.txt"] == "4", shown


def syncs():
    (source / "a/b/shallow.txt").unlink()
    (source / "a/b/c/deep.txt").write_bytes(b"deeper")
    (source / "new").write_bytes(b"new")
    options = ["--delete-destination", "true"]
    assert transferred(job("sync", source, url("up"), *options, *UP)) == 2
    same(source, mount / "up")
    (mount / "up/new").write_bytes(b"newer")
    transferred(job("sync", url("up"), source, *options, *DOWN))
    assert (source / "new").read_bytes() == b"newer"
    same(source, mount / "up")


def refusals():
    named = [source / "new", url("up/new", permission="r"), *UP]
    end = job("copy", *named, status=1)
    assert (end["JobStatus"], end["TransfersCompleted"]) == ("Cancelled", "0"), end
    assert (mount / "up/new").read_bytes() == b"newer"


def removes():
    end = job("remove", url("up/a/b"), "--recursive", "--from-to", "FileTrash")
    assert (end["JobStatus"], end["TransfersFailed"]) == ("Completed", "0"), end
    assert not (mount / "up/a/b").exists() and (mount / "up/new").exists()
    job("remove", url("up"), "--recursive", "--from-to", "FileTrash")
    assert os.listdir(mount) == [], os.listdir(mount)


copies()
lists()
syncs()
refusals()
removes()
print("met")
