"""rclone against the Blob service of a running latchfs: copies, syncs, checks, mounts, moves, purges."""
import json
import os
import pathlib
import shutil
import subprocess
import time

from common import WHEN, folder, make_tree, program, ready, run, tree_of

from blobs import blobs_of, endpoint, same_as_blobs, service

ENV = {
    "RCLONE_CONFIG": str(folder / "rclone.conf"),
    "RCLONE_CONFIG_AZ_TYPE": "azureblob",
    "RCLONE_CONFIG_AZ_ACCOUNT": ready["account"],
    "RCLONE_CONFIG_AZ_KEY": ready["key"],
    "RCLONE_CONFIG_AZ_ENDPOINT": endpoint,
    # Blocks of 1 MiB for what is longer than that.
    "RCLONE_CONFIG_AZ_CHUNK_SIZE": "1M",
    "RCLONE_CONFIG_AZ_UPLOAD_CUTOFF": "1M",
    # A refusal is to be seen at once.
    "RCLONE_RETRIES": "1",
    "RCLONE_LOW_LEVEL_RETRIES": "1",
}
source, down = folder / "source", folder / "down"


def rclone(*words, status=0):
    return run(*words, env=ENV, status=status)


def copies():
    make_tree(source)
    rclone("mkdir", "az:con")
    rclone("copy", source, "az:con/up")
    same_as_blobs(tree_of(source), "con", "up/")
    rclone("check", source, "az:con/up")
    rclone("copy", "az:con/up", down)
    assert tree_of(down) == tree_of(source)
    times = {path.stat().st_mtime for path in down.rglob("*") if path.is_file()}
    assert times == {WHEN}, times
    assert len(service.get_blob_client("con", "up/long.bin").get_block_list()[0]) == 9


def lists():
    shown = {one["Path"]: one for one in json.loads(rclone("lsjson", "--recursive", "az:con/up"))}
    assert shown.keys() >= tree_of(source).keys(), shown
    assert shown["a/b"]["IsDir"] and not shown["empty"]["IsDir"]
    assert shown["a/b/c/deep.txt"]["Size"] == 4
    assert shown["empty"]["ModTime"].startswith("2009-02-13T23:31:30")
    assert rclone("cat", "az:con/up/ünïcode/Grüße 文件.txt") == "Grüße"
    assert [one["Path"] for one in json.loads(rclone("lsjson", "az:"))] == ["con"]


def syncs():
    (source / "a/b/shallow.txt").unlink()
    (source / "a/b/c/deep.txt").write_bytes(b"deeper")
    (source / "new").write_bytes(b"new")
    rclone("check", source, "az:con/up", status=1)
    rclone("sync", source, "az:con/up")
    same_as_blobs(tree_of(source), "con", "up/")
    rclone("check", "--download", source, "az:con/up")


def waits_for(what, condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.05)


def mounts():
    """A container as a directory: what is written there is a blob, and the other way round."""
    if not pathlib.Path("/dev/fuse").exists() or shutil.which("fusermount3") is None:
        reason = "rclone mount needs /dev/fuse and fusermount3"
        assert "fuse" not in os.environ.get("LATCHFS_REQUIRE", ""), reason
        print(f"SKIPPED: {reason}")
        return
    at = folder / "mounted"
    at.mkdir()
    words = ["mount", "az:con/up", at, "--vfs-cache-mode", "writes", "--vfs-write-back", "0s"]
    words += ["--dir-cache-time", "0s", "--cache-dir", folder / "cache"]
    mounted = subprocess.Popen([program, *map(str, words)], env=os.environ | ENV)
    try:
        waits_for("the mount", lambda: os.path.ismount(at) or mounted.poll() is not None)
        assert mounted.poll() is None, "rclone mount has ended"
        assert tree_of(at) == tree_of(source)
        (at / "a/from the mount").write_bytes(b"mounted" * 300_000)
        waits_for("the blob", lambda: "a/from the mount" in blobs_of("con", "up/"))
        assert blobs_of("con", "up/")["a/from the mount"] == b"mounted" * 300_000
        os.rename(at / "a/from the mount", at / "moved on the mount")
        waits_for("the rename", lambda: "moved on the mount" in blobs_of("con", "up/"))
        (at / "moved on the mount").unlink()
        service.get_blob_client("con", "up/beside").upload_blob(b"beside", overwrite=True)
        waits_for("the upload", lambda: (at / "beside").exists())
        assert (at / "beside").read_bytes() == b"beside"
        (at / "beside").unlink()
        same_as_blobs(tree_of(source), "con", "up/")
    finally:
        subprocess.run(["fusermount3", "-u", at], check=False)
        try:
            mounted.wait(timeout=60)
        finally:
            mounted.kill()


def moves():
    rclone("moveto", "az:con/up/new", "az:con/up/a/moved é.txt")
    rclone("copyto", "az:con/up/empty", "az:con/up/empty too")
    blobs = blobs_of("con", "up/")
    assert blobs["a/moved é.txt"] == b"new" and blobs["empty too"] == b"" and "new" not in blobs
    rclone("settier", "Cool", "az:con/up/empty")
    assert service.get_blob_client("con", "up/empty").get_blob_properties().blob_tier == "Cool"


def leased():
    lease = service.get_blob_client("con", "up/empty").acquire_lease()
    rclone("deletefile", "az:con/up/empty", status=1)
    lease.release()
    rclone("deletefile", "az:con/up/empty")


def purges():
    rclone("purge", "az:con/up")
    assert blobs_of("con") == {}, blobs_of("con").keys()
    rclone("rmdir", "az:con")
    assert not service.get_container_client("con").exists()


copies()
lists()
syncs()
mounts()
moves()
leased()
purges()
print("met")
