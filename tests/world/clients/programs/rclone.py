"""rclone against a running latchfs: copies, syncs, checks, moves, lists and purges."""
import json
import os

from common import WHEN, folder, make_tree, mount, ready, run, same, tree_of

ENV = {
    "RCLONE_CONFIG": str(folder / "rclone.conf"),
    "RCLONE_CONFIG_AZ_TYPE": "azurefiles",
    "RCLONE_CONFIG_AZ_SHARE_NAME": "share",
    "RCLONE_CONFIG_AZ_CONNECTION_STRING": ready["connection_string"],
    # A refusal is to be seen at once.
    "RCLONE_RETRIES": "1",
    "RCLONE_LOW_LEVEL_RETRIES": "1",
}
source, down = folder / "source", folder / "down"


def rclone(*words, status=0):
    return run(*words, env=ENV, status=status)


def listed(path, *options):
    return {item["Path"]: item for item in json.loads(rclone("lsjson", *options, path))}


def copies():
    make_tree(source)
    rclone("copy", source, "az:up")
    same(source, mount / "up")
    rclone("check", source, "az:up")
    rclone("copy", "az:up", down)
    same(source, down)
    times = {path.stat().st_mtime for path in down.rglob("*") if path.is_file()}
    assert times == {WHEN}, times
    assert "There was nothing to transfer" in run(
        "copy", source, "az:up", "-v", "--log-file", folder / "log", env=ENV
    ) + (folder / "log").read_text()


def lists():
    shown = listed("az:up", "--recursive")
    assert shown.keys() >= tree_of(source).keys(), shown
    assert shown["a/b"]["IsDir"] and not shown["empty"]["IsDir"]
    assert shown["a/b/c/deep.txt"]["Size"] == 4
    assert shown["empty"]["ModTime"].startswith("2009-02-13T23:31:30")
    assert rclone("cat", "az:up/ünïcode/Grüße 文件.txt") == "Grüße"


def syncs():
    (source / "a/b/shallow.txt").unlink()
    (source / "a/b/c/deep.txt").write_bytes(b"deeper")
    (source / "new").write_bytes(b"new")
    rclone("check", source, "az:up", status=1)
    rclone("sync", source, "az:up")
    same(source, mount / "up")
    rclone("check", "--download", source, "az:up")


def moves():
    rclone("moveto", "az:up/new", "az:up/a/moved é.txt")
    assert (mount / "up/a/moved é.txt").read_bytes() == b"new"
    assert not (mount / "up/new").exists()
    rclone("moveto", "az:up/a", "az:up/A renamed")
    assert (mount / "up/A renamed/b/c/deep.txt").read_bytes() == b"deeper"
    rclone("copyto", "az:up/empty", "az:up/empty too")
    assert (mount / "up/empty too").read_bytes() == b""


def directories():
    rclone("mkdir", "az:made/below")
    assert (mount / "made/below").is_dir()
    rclone("rmdir", "az:made", status=1)
    rclone("rmdir", "az:made/below")
    rclone("rmdir", "az:made")
    assert not (mount / "made").exists()
    rclone("rmdir", "az:none", status=3)


def held_on_the_mount():
    with open(mount / "up/empty", "r+b"):
        rclone("deletefile", "az:up/empty", status=1)
    rclone("deletefile", "az:up/empty")


def purges():
    rclone("purge", "az:up")
    assert os.listdir(mount) == [], os.listdir(mount)


copies()
lists()
syncs()
moves()
directories()
held_on_the_mount()
purges()
print("met")
