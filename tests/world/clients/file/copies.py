"""Copies of whole files, under way and aborted, and ranges taken from a URL."""

import asyncio
from datetime import timedelta

from azure.storage.fileshare import FileSasPermissions
from checks import PATIENCE, now, refused

GIB = 1 << 30


async def play(it):
    share = await it.service.create_share("copies")
    await whole(it, share)
    await under_way(it, share)
    await from_url(it, share)


async def ended(file):
    """The properties of a file when no copy onto it is under way any more."""
    end = now() + PATIENCE
    while (got := await file.get_file_properties()).copy.status == "pending":
        assert now() < end, "the copy goes on"
        await asyncio.sleep(0.005)
    return got


async def whole(it, share):
    source, target = share.get_file_client("a b"), share.get_file_client("copy")
    await source.upload_file(b"copied", metadata={"a": "1"})
    answer = await target.start_copy_from_url(source.url)
    assert answer["copy_id"] and answer["copy_status"] in ("success", "pending")
    got = await ended(target)
    assert (got.copy.id, got.copy.status) == (answer["copy_id"], "success")
    assert (got.copy.source, got.copy.progress) == (source.url, "6/6")
    assert got.metadata == {"a": "1"}
    assert await (await target.download_file()).readall() == b"copied"

    beyond = await it.service.create_share("copies-beyond")
    far = beyond.get_file_client("far")
    await far.start_copy_from_url(source.url, metadata={"b": "2"}, file_attributes="Hidden")
    got = await ended(far)
    assert got.metadata == {"b": "2"} and "Hidden" in str(got.file_attributes)
    none = share.get_file_client("none")
    await refused(404, "ResourceNotFound", target.start_copy_from_url(none.url))
    foreign = "http://elsewhere.example/share/file"
    await refused(403, "CannotVerifyCopySource", target.start_copy_from_url(foreign))
    await refused(409, "NoPendingCopyOperation", target.abort_copy(got.copy.id))


async def under_way(it, share):
    # All hole, so it takes no room, and so long that its copy is met under way.
    source, target = share.get_file_client("long"), share.get_file_client("long-copy")
    await source.create_file(64 * GIB)
    answer = await target.start_copy_from_url(source.url)
    if answer["copy_status"] == "success":
        it.face.excuse(
            "ShareFileClient", "abort_copy", "this file system copies a file of any size at once"
        )
        return
    assert (await target.get_file_properties()).copy.status == "pending"
    await refused(409, "PendingCopyOperation", target.upload_range(b"x", 0, 1))
    await refused(409, "PendingCopyOperation", target.start_copy_from_url(source.url))
    await refused(409, "CopyIdMismatch", target.abort_copy("another"))
    await target.abort_copy(answer)
    got = await target.get_file_properties()
    assert (got.copy.status, got.copy.id, got.size) == ("aborted", answer["copy_id"], 0)
    await refused(409, "NoPendingCopyOperation", target.abort_copy(got))
    await source.delete_file()


async def from_url(it, share):
    source, target = share.get_file_client("source"), share.get_file_client("ranges")
    await source.upload_file(b"0123456789")
    await target.create_file(10)
    url = readable(it, source)
    answer = await target.upload_range_from_url(url, offset=2, length=4, source_offset=5)
    assert answer["etag"] and len(answer["content_crc64"]) == 8
    assert await (await target.download_file()).readall() == b"\0\0" + b"5678" + bytes(4)
    crc = bytes(answer["content_crc64"])
    same = {"offset": 0, "length": 4, "source_offset": 5}
    await target.upload_range_from_url(url, **same, source_if_match_crc64=crc)
    other = {"source_if_none_match_crc64": crc}
    await refused(
        412, "SourceConditionNotMet", target.upload_range_from_url(url, **same, **other)
    )
    wrong = {"source_content_crc64": bytes(8)}
    await refused(400, "Crc64Mismatch", target.upload_range_from_url(url, **same, **wrong))
    none = readable(it, share.get_file_client("none"))
    await refused(404, "ResourceNotFound", target.upload_range_from_url(none, **same))
    await refused(416, "InvalidRange", target.upload_range_from_url(url, 8, 4, 0))


def readable(it, file):
    """The URL of a file of the share with a SAS that reads it."""
    end = now() + timedelta(hours=1)
    may = FileSasPermissions(read=True)
    sas = it.face.generate_file_sas(it.account, "copies", [file.file_name], it.key, may, end)
    return f"{file.url}?{sas}"
