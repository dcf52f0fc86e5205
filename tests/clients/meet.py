"""The official Python SDK against a running latchfs, while a program on the mount holds the file.

Usage: meet.py READY_FILE LATCHFS. Fails with an assertion where an answer is not as expected.
"""
import datetime
import json
import os
import subprocess
import sys

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.fileshare import ShareFileClient, ShareServiceClient, generate_share_sas

ready = json.load(open(sys.argv[1], encoding="utf-8"))
latchfs = sys.argv[2]
mount = ready["mounts"][0]["path"]
service = ShareServiceClient.from_connection_string(ready["connection_string"])


def refused(call, code, kind=ResourceExistsError):
    """The text of the refusal that `call` must meet."""
    try:
        call()
    except kind as error:
        assert error.error_code == code, (error.error_code, code)
        return str(error)
    raise AssertionError(f"{code} expected")


def round_of_files():
    share = service.get_share_client("demo")
    share.create_share(metadata={"a": "b"})
    assert sorted(item.name for item in service.list_shares()) == ["demo", "share"]
    directory = share.create_directory("Dir A")
    file = directory.get_file_client("x.txt")
    file.upload_file(b"hello " * 1000, metadata={"k": "v"})
    assert file.download_file().readall() == b"hello " * 1000
    assert [item["name"] for item in directory.list_directories_and_files()] == ["x.txt"]
    file.upload_range(b"HELLO", 0, 5)
    assert file.download_file(0, 5).readall() == b"HELLO"
    assert file.get_file_properties().metadata == {"k": "v"}
    lease = file.acquire_lease()
    refused(lambda: file.upload_range(b"x", 0, 1), "LeaseIdMissing", HttpResponseError)
    file.upload_range(b"x", 0, 1, lease=lease)
    lease.release()
    assert share.create_snapshot()["snapshot"]
    assert file.rename_file("Dir A/y.txt").get_file_properties().size == 6000


def held_on_the_mount():
    share = service.get_share_client("share")
    file = share.get_file_client("a.txt")
    file.upload_file(b"data")
    with open(os.path.join(mount, "a.txt"), "rb") as seen:
        assert seen.read() == b"data"
    hold = [latchfs, "hold", os.path.join(mount, "a.txt"), "--access", "rw", "--share", "none"]
    with subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        handle = json.loads(holder.stdout.readline())["handle"]
        assert f"handle {handle}" in refused(file.download_file, "SharingViolation")
        assert file.get_file_properties().size == 4
        assert [item.id for item in file.list_handles()] == [str(handle)]
        assert file.close_all_handles()["closed_handles_count"] == 1
        assert file.download_file().readall() == b"data"
        holder.stdin.close()
    held = os.open(os.path.join(mount, "a.txt"), os.O_RDWR)
    os.unlink(os.path.join(mount, "a.txt"))
    refused(file.get_file_properties, "SMBDeletePending")
    assert not list(share.list_directories_and_files())
    os.close(held)
    refused(file.get_file_properties, "ResourceNotFound", ResourceNotFoundError)


def signatures():
    expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    sas = generate_share_sas(ready["account"], "demo", ready["key"], permission="rl", expiry=expiry)
    reader = ShareFileClient(ready["endpoint"], "demo", "Dir A/y.txt", credential=sas)
    assert len(reader.download_file().readall()) == 6000
    write = lambda: reader.upload_range(b"x", 0, 1)  # noqa: E731
    refused(write, "AuthorizationPermissionMismatch", HttpResponseError)
    wrong = ready["connection_string"].replace("AccountKey=E", "AccountKey=F")
    stranger = ShareServiceClient.from_connection_string(wrong)
    refused(lambda: list(stranger.list_shares()), "AuthenticationFailed", HttpResponseError)


round_of_files()
held_on_the_mount()
signatures()
print("met")
