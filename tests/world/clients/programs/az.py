"""az against a running latchfs: shares, directories and files, one by one and in batches."""
import json
import os

from common import folder, make_tree, mount, ready, run, same, tree_of

ENV = {
    "AZURE_CONFIG_DIR": str(folder / "config"),
    "AZURE_STORAGE_CONNECTION_STRING": ready["connection_string"],
    "AZURE_CORE_COLLECT_TELEMETRY": "false",
    "AZURE_CORE_NO_COLOR": "true",
    "AZURE_CORE_ONLY_SHOW_ERRORS": "true",
    "AZURE_CORE_DISABLE_PROGRESS_BAR": "true",
}
source, down = folder / "source", folder / "down"


def az(*words, status=0):
    """What a storage command answers, read as JSON."""
    text = run("storage", *words, "--output", "json", env=ENV, status=status)
    return json.loads(text) if text.strip() else None


def names(kind):
    return [found["name"] for found in az(kind, "list", "--share-name", "share")]


def shares():
    assert az("share", "create", "--name", "made", "--quota", "3", "--metadata", "a=b")["created"]
    assert not az("share", "create", "--name", "made")["created"]
    az("share", "create", "--name", "made", "--fail-on-exist", status=1)
    assert az("share", "exists", "--name", "made") == {"exists": True}
    assert [share["name"] for share in az("share", "list")] == ["made", "share"]
    shown = az("share", "show", "--name", "made")
    assert (shown["properties"]["quota"], shown["metadata"]) == (3, {"a": "b"}), shown
    az("share", "metadata", "update", "--name", "made", "--metadata", "c=d")
    assert az("share", "metadata", "show", "--name", "made") == {"c": "d"}
    assert az("share", "snapshot", "--name", "made")["snapshot"]
    assert az("share", "delete", "--name", "made", "--delete-snapshots", "include")["deleted"]
    assert az("share", "exists", "--name", "made") == {"exists": False}


def directories():
    named = ["--share-name", "share", "--name", "Dir A"]
    assert az("directory", "create", *named)["created"]
    assert (mount / "Dir A").is_dir()
    assert az("directory", "exists", *named) == {"exists": True}
    assert names("directory") == ["Dir A"]
    az("directory", "metadata", "update", *named, "--metadata", "k=v")
    assert az("directory", "metadata", "show", *named) == {"k": "v"}
    assert az("directory", "show", *named)["name"] == "Dir A"
    assert az("directory", "delete", *named)["deleted"]
    assert not (mount / "Dir A").exists()


def files():
    make_tree(source)
    named = ["--share-name", "share", "--path", "up é.bin"]
    az("file", "upload", "--share-name", "share", "--source", source / "long.bin",
       "--path", "up é.bin", "--metadata", "m=1")
    assert (mount / "up é.bin").read_bytes() == (source / "long.bin").read_bytes()
    shown = az("file", "show", *named)
    assert shown["properties"]["contentLength"] == (source / "long.bin").stat().st_size, shown
    assert az("file", "exists", *named) == {"exists": True}
    assert names("file") == ["up é.bin"]
    az("file", "metadata", "update", *named, "--metadata", "n=2")
    assert az("file", "metadata", "show", *named) == {"n": "2"}
    az("file", "download", *named, "--dest", folder / "got.bin")
    assert (folder / "got.bin").read_bytes() == (source / "long.bin").read_bytes()
    az("file", "resize", *named, "--size", "10")
    assert (mount / "up é.bin").stat().st_size == 10
    az("file", "copy", "start", "--source-share", "share", "--source-path", "up é.bin",
       "--destination-share", "share", "--destination-path", "copy.bin")
    assert (mount / "copy.bin").read_bytes() == (mount / "up é.bin").read_bytes()
    with open(mount / "copy.bin", "r+b"):
        az("file", "delete", "--share-name", "share", "--path", "copy.bin", status=1)
    for name in ["up é.bin", "copy.bin"]:
        az("file", "delete", "--share-name", "share", "--path", name)
    az("file", "show", *named, status=3)


def batches():
    sent = az("file", "upload-batch", "--source", source, "--destination", "share")
    assert len(sent) == len(tree_of(source)), sent
    same(source, mount)
    down.mkdir()
    az("file", "download-batch", "--source", "share", "--destination", down)
    same(source, down)
    az("file", "delete-batch", "--source", "share")
    assert not tree_of(mount), os.listdir(mount)


shares()
directories()
files()
batches()
print("met")
