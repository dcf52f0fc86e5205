"""az against the Blob service of a running latchfs: containers, blobs, leases, snapshots, copies."""
from az_common import az
from blobs import blobs_of, same_as_blobs
from common import folder, make_tree, tree_of

source, down = folder / "source", folder / "down"


def containers():
    assert az("container", "create", "--name", "con", "--metadata", "a=b")["created"]
    assert not az("container", "create", "--name", "con")["created"]
    assert az("container", "exists", "--name", "con") == {"exists": True}
    assert [one["name"] for one in az("container", "list")] == ["con"]
    az("container", "metadata", "update", "--name", "con", "--metadata", "c=d")
    assert az("container", "metadata", "show", "--name", "con") == {"c": "d"}
    az("container", "set-permission", "--name", "con", "--public-access", "blob")
    shown = az("container", "show-permission", "--name", "con")
    assert shown["publicAccess"] == "blob", shown
    lease = az("container", "lease", "acquire", "--container-name", "con", "--lease-duration", "60")
    az("container", "delete", "--name", "con", status=1)
    az("container", "lease", "release", "--container-name", "con", "--lease-id", lease)


def blobs():
    make_tree(source)
    named = ["--container-name", "con", "--name", "up é.bin"]
    az("blob", "upload", *named, "--file", source / "long.bin", "--metadata", "m=1")
    az("blob", "upload", *named, "--file", source / "long.bin", status=1)
    az("blob", "upload", *named, "--file", source / "empty", "--overwrite")
    shown = az("blob", "show", *named)
    assert shown["properties"]["contentLength"] == 0 and shown["name"] == "up é.bin", shown
    assert az("blob", "exists", *named) == {"exists": True}
    assert [one["name"] for one in az("blob", "list", "--container-name", "con")] == ["up é.bin"]
    lease = az("blob", "lease", "acquire", "--container-name", "con", "--blob-name", "up é.bin")
    az("blob", "upload", *named, "--file", source / "empty", "--overwrite", status=1)
    az("blob", "upload", *named, "--file", source / "long.bin", "--overwrite", "--lease-id", lease)
    leased = ["--container-name", "con", "--blob-name", "up é.bin"]
    az("blob", "lease", "break", *leased)
    az("blob", "metadata", "update", *named, "--metadata", "n=2")
    assert az("blob", "metadata", "show", *named) == {"n": "2"}
    assert az("blob", "snapshot", *named)["snapshot"]
    az("blob", "set-tier", *named, "--tier", "Cool")
    az("blob", "download", *named, "--file", folder / "got.bin")
    assert (folder / "got.bin").read_bytes() == (source / "long.bin").read_bytes()
    az("blob", "copy", "start", "--source-container", "con", "--source-blob", "up é.bin",
       "--destination-container", "con", "--destination-blob", "copy")
    assert blobs_of("con", "copy")[""] == (source / "long.bin").read_bytes()
    az("blob", "delete", *named, status=1)
    az("blob", "delete", *named, "--delete-snapshots", "include")
    az("blob", "show", *named, status=3)


def batches():
    az("blob", "upload-batch", "--source", source, "--destination", "con",
       "--destination-path", "up")
    same_as_blobs(tree_of(source), "con", "up/")
    down.mkdir()
    az("blob", "download-batch", "--source", "con", "--destination", down, "--pattern", "up/*")
    assert tree_of(down / "up") == tree_of(source)
    az("blob", "delete-batch", "--source", "con", "--pattern", "up/*")
    assert blobs_of("con", "up/") == {}
    assert az("container", "delete", "--name", "con")["deleted"]


containers()
blobs()
batches()
print("met")
