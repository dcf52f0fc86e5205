"""The SDK while programs on the mount have files open: the same table stands behind both."""

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import subprocess

from checks import PATIENCE, now, recent, refused
from faces import listed


async def play(it):
    share = it.service.get_share_client("share")
    await same_bytes(it, share)
    await held_alone(it, share)
    await held_by_sharers(it, share)
    await handles_of_files(it, share)
    await handles_of_directories(it, share)
    await pending(it, share)
    await locked(it, share)
    await leased(it, share)


@contextlib.asynccontextmanager
async def held(it, name, access="rw", share="none"):
    """Another program has a file of the mount open; gives its handle."""
    path = os.path.join(it.mount, name)
    command = [it.latchfs, "hold", path, "--access", access, "--share", share]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as holder:
        try:
            yield str(json.loads(holder.stdout.readline())["handle"])
        finally:
            holder.stdin.close()
    await released(it, name)


async def released(it, name):
    """Waits until nobody has the file open: the kernel tells of a close when it gets to it."""
    root = it.service.get_share_client("share").get_directory_client()
    end = now() + PATIENCE
    while name in [handle.path async for handle in root.list_handles(recursive=True)]:
        assert now() < end, f"{name} stays open"
        await asyncio.sleep(0.002)


async def same_bytes(it, share):
    file = share.get_file_client("both.txt")
    await file.upload_file(b"from the SDK")
    path = os.path.join(it.mount, "both.txt")
    with open(path, "r+b") as seen:
        assert seen.read() == b"from the SDK"
        seen.seek(0)
        seen.write(b"FROM")
        seen.flush()
        assert await (await file.download_file()).readall() == b"FROM the SDK"
        await file.upload_range(b"to", 5, 2)
        seen.seek(0)
        assert seen.read() == b"FROM toe SDK"
    await released(it, "both.txt")
    os.mkdir(os.path.join(it.mount, "made"))
    assert await share.get_directory_client("made").exists()
    await file.rename_file("made/moved.txt")
    assert os.listdir(os.path.join(it.mount, "made")) == ["moved.txt"]


async def held_alone(it, share):
    file = share.get_file_client("alone.txt")
    await file.upload_file(b"alone")
    async with held(it, "alone.txt") as handle:
        error = await refused(409, "SharingViolation", file.download_file())
        assert f"handle {handle}" in error.message, error
        other = share.get_file_client("other.txt")
        for call in (
            file.upload_range(b"x", 0, 1),
            file.clear_range(0, 512),
            file.create_file(1),
            file.upload_file(b"x"),
            file.resize_file(1),
            file.delete_file(),
            file.rename_file("renamed.txt"),
            file.get_ranges(),
            listed(file.list_ranges()),
            file.acquire_lease(),
            other.start_copy_from_url(file.url),
            share.get_directory_client().delete_file("alone.txt"),
        ):
            await refused(409, "SharingViolation", call)
        # Looking is not reading.
        assert (await file.get_file_properties()).size == 5
    assert await (await file.download_file()).readall() == b"alone"


async def held_by_sharers(it, share):
    file = share.get_file_client("shared.txt")
    await file.upload_file(b"shared")
    async with held(it, "shared.txt", "r", "r"):
        assert await (await file.download_file()).readall() == b"shared"
        await refused(409, "SharingViolation", file.upload_range(b"x", 0, 1))
        await refused(409, "SharingViolation", file.delete_file())
    async with held(it, "shared.txt", "rw", "rwd"):
        await file.upload_range(b"S", 0, 1)
    await file.delete_file()


async def handles_of_files(it, share):
    file = share.get_file_client("handles.txt")
    await file.upload_file(b"handles")
    assert await listed(file.list_handles()) == []
    name = "handles.txt"
    async with held(it, name, "r", "rwd") as first, held(it, name, "rw", "rwd") as second:
        one, two = await listed(file.list_handles())
        assert (one.id, two.id) == (first, second)
        assert (one.path, one.access_rights) == ("handles.txt", ["Read"])
        assert two.access_rights == ["Read", "Write"]
        got = await file.get_file_properties()
        assert (one.file_id, one.parent_id) == (got.file_id, got.parent_id)
        assert one.client_ip == "127.0.0.1" and one.client_name and one.session_id
        recent(one.open_time)
        pages = file.list_handles(results_per_page=1).by_page()
        assert [item.id for item in await pages.page()] == [first]
        rest = file.list_handles(results_per_page=1).by_page(pages.token)
        assert [[item.id for item in await listed(page)] async for page in rest] == [[second]]

        counts = {"closed_handles_count": 1, "failed_handles_count": 0}
        assert await file.close_handle(one) == counts
        assert await file.close_handle(first) == {**counts, "closed_handles_count": 0}
        assert await file.close_all_handles() == counts
        assert await listed(file.list_handles()) == []
    await refused(400, "InvalidHeaderValue", file.close_handle("nonsense"))
    none = share.get_file_client("none")
    await refused(404, "ResourceNotFound", listed(none.list_handles()))
    await refused(404, "ResourceNotFound", none.close_all_handles())


async def handles_of_directories(it, share):
    top = await share.create_directory("tree")
    await (await top.create_subdirectory("branch")).upload_file("leaf", b"leaf")
    async with held(it, "tree/branch/leaf", "r", "rwd") as first:
        assert await listed(top.list_handles()) == []
        (seen,) = await listed(top.list_handles(recursive=True))
        assert (seen.id, seen.path) == (first, "tree/branch/leaf")
        async with held(it, "tree/branch/leaf", "r", "rwd") as second:
            await refused(409, "SharingViolation", top.rename_directory("away"))
            none = {"closed_handles_count": 0, "failed_handles_count": 0}
            assert await top.close_all_handles() == none
            found = await listed(top.list_handles(recursive=True, results_per_page=1))
            assert [item.id for item in found] == [first, second]
            closed = await top.close_all_handles(recursive=True)
            assert closed == {**none, "closed_handles_count": 2}
    opened = os.open(os.path.join(it.mount, "tree"), os.O_RDONLY | os.O_DIRECTORY)
    (own,) = await listed(top.list_handles())
    assert own.path == "tree"
    assert (await top.close_handle(own.id))["closed_handles_count"] == 1
    os.close(opened)
    await refused(400, "InvalidHeaderValue", top.close_handle("nonsense"))
    gone = share.get_directory_client("none")
    await refused(404, "ResourceNotFound", listed(gone.list_handles()))
    await refused(404, "ResourceNotFound", gone.close_all_handles(recursive=True))


async def pending(it, share):
    file = share.get_file_client("pending.txt")
    await file.upload_file(b"pending")
    path = os.path.join(it.mount, "pending.txt")
    held_open = os.open(path, os.O_RDWR)
    os.unlink(path)
    for call in (
        file.get_file_properties(),
        file.exists(),
        file.download_file(),
        file.upload_range(b"x", 0, 1),
        file.create_file(1),
        file.delete_file(),
        file.set_file_metadata({"a": "1"}),
    ):
        await refused(409, "SMBDeletePending", call)
    assert not await listed(share.list_directories_and_files(name_starts_with="pending"))
    os.close(held_open)
    await released(it, "pending.txt")
    assert not await file.exists()


async def locked(it, share):
    file = share.get_file_client("locked.txt")
    await file.upload_file(b"x" * 100)
    with open(os.path.join(it.mount, "locked.txt"), "r+b") as seen:
        fcntl.lockf(seen, fcntl.LOCK_EX, 10, 20)
        # Put Range wants the whole file, Get File what it reads.
        await refused(409, "FileLockConflict", file.upload_range(b"y" * 10, 80, 10))
        await refused(409, "FileLockConflict", file.resize_file(50))
        await refused(409, "FileLockConflict", file.download_file(20, 5))
        assert await (await file.download_file(0, 20)).readall() == b"x" * 20
    await released(it, "locked.txt")
    await file.upload_range(b"y" * 10, 80, 10)


async def leased(it, share):
    file = share.get_file_client("leased.txt")
    await file.upload_file(b"leased")
    path = os.path.join(it.mount, "leased.txt")
    lease = await file.acquire_lease()
    for change in (lambda: os.open(path, os.O_RDWR), lambda: os.unlink(path)):
        try:
            change()
        except OSError as error:
            assert error.errno == errno.EBUSY, error
        else:
            raise AssertionError("a leased file was changed on the mount")
    with open(path, "rb") as seen:
        assert seen.read() == b"leased"
    await lease.release()
    os.unlink(path)
