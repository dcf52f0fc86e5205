"""The bytes of a file: uploads, downloads, ranges."""

import hashlib
import io
import os

from azure.core.exceptions import ResourceModifiedError
from checks import recent, refused
from directories import PAST
from faces import listed

MIB = 1 << 20
# Small pieces, so that one download is many requests.
PIECES = {"max_single_get_size": 64 << 10, "max_chunk_get_size": 32 << 10}


async def play(it):
    share = await it.service.create_share("content")
    await uploads(it, share)
    await downloads(it, share)
    await whole_or_empty(share)
    await writes(share)
    await ranges(share)
    await changes(share)
    await cut_short(it, share)


async def uploads(it, share):
    data = os.urandom(9 * MIB + 17)
    file = share.get_file_client("large")
    told = []

    def progress(done, total):
        told.append((done, total))

    async def progress_awaited(done, total):
        progress(done, total)

    # More than two ranges of 4 MiB, several at once, each with its MD5.
    hook = progress_awaited if it.face.name == "aio" else progress
    await file.upload_file(data, max_concurrency=3, validate_content=True, progress_hook=hook)
    assert max(told) == (len(data), len(data)) and len(told) == 3
    got = await (await file.download_file(max_concurrency=2)).readall()
    assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()

    file = share.get_file_client("kinds")
    for given, length, wanted in (
        ("täxt", None, "täxt".encode()),
        (io.BytesIO(b"stream"), None, b"stream"),
        (b"cut short", 3, b"cut"),
        ((bytes([letter]) * 3 for letter in b"abc"), 9, b"aaabbbccc"),
    ):
        await file.upload_file(given, length=length)
        assert await (await file.download_file()).readall() == wanted
    await refused(404, "ParentNotFound", share.get_file_client("no/where").upload_file(b"x"))


async def downloads(it, share):
    data = os.urandom(300_000)
    await share.get_file_client("pieces").upload_file(data)
    at = ("ShareFileClient", "content", "pieces")
    async with it.opened(*at, credential=it.key, **PIECES) as file:
        await in_pieces(file, data)
        # What the SDK calls deprecated.
        assert await (await file.download_file(0, 10)).content_as_bytes() == data[:10]
        into = io.BytesIO()
        await (await file.download_file()).download_to_stream(into, max_concurrency=2)
        assert into.getvalue() == data
    await refused(404, "ResourceNotFound", share.get_file_client("none").download_file())


async def in_pieces(file, data):
    stream = await file.download_file(max_concurrency=4)
    assert (stream.size, stream.name) == (len(data), "pieces")
    into = io.BytesIO()
    assert await stream.readinto(into) == len(data)
    assert into.getvalue() == data
    checked = await file.download_file(validate_content=True, max_concurrency=2)
    assert await checked.readall() == data
    chunks = await listed((await file.download_file()).chunks())
    assert b"".join(chunks) == data and {len(chunk) for chunk in chunks[:-1]} == {32 << 10}

    part = await file.download_file(offset=100_000, length=150_000)
    assert await part.readall() == data[100_000:250_000]
    tail = await file.download_file(offset=299_990)
    assert await tail.readall() == data[-10:]
    past = await file.download_file(offset=299_990, length=100)
    assert await past.readall() == data[-10:]
    await refused(416, "InvalidRange", file.download_file(offset=300_000))


async def whole_or_empty(share):
    file = share.get_file_client("empty")
    await file.upload_file(b"")
    assert await (await file.download_file()).readall() == b""
    assert await (await file.download_file(validate_content=True)).readall() == b""
    await file.upload_file("Grüße")
    assert await (await file.download_file()).content_as_text() == "Grüße"
    assert await (await file.download_file(encoding="UTF-8")).readall() == "Grüße"


async def writes(share):
    file = share.get_file_client("writes")
    await file.create_file(20, file_last_write_time=PAST)
    first = await file.get_file_properties()
    answer = await file.upload_range(b"HELLO", 5, 5, validate_content=True)
    assert answer["content_md5"] == bytearray(hashlib.md5(b"HELLO").digest())
    second = await file.get_file_properties()
    assert second.etag == answer["etag"] != first.etag
    recent(second.last_write_time)
    kept = await file.upload_range("ü", 0, 2, file_last_write_mode="preserve")
    assert kept["file_last_write_time"]
    third = await file.get_file_properties()
    assert third.last_write_time == second.last_write_time
    data = await (await file.download_file()).readall()
    assert data == "ü".encode() + bytes(3) + b"HELLO" + bytes(10)
    # Only a resize makes a file longer.
    await refused(416, "InvalidRange", file.upload_range(b"HELLO", 18, 5))
    wrong = {"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}
    await refused(400, "Md5Mismatch", file.upload_range(b"other", 5, 5, headers=wrong))
    await refused(404, "ResourceNotFound", share.get_file_client("none").upload_range(b"x", 0, 1))
    assert await (await file.download_file()).readall() == data


async def ranges(share):
    file = share.get_file_client("ranges")
    await file.create_file(4 * MIB)
    assert await file.get_ranges() == []
    for place in (0, 2):
        await file.upload_range(b"x" * 65_536, place * MIB, 65_536)
    both = [{"start": 0, "end": 65_535}, {"start": 2 * MIB, "end": 2 * MIB + 65_535}]
    assert await file.get_ranges() == both
    assert await file.get_ranges(offset=MIB, length=2 * MIB) == both[1:]
    found = [(item.start, item.end, item.cleared) for item in await listed(file.list_ranges())]
    assert found == [(item["start"], item["end"], False) for item in both]
    pages = file.list_ranges(results_per_page=1).by_page()
    assert [item.start for item in await pages.page()] == [0]
    rest = file.list_ranges(results_per_page=1).by_page(pages.token)
    assert [[item.start for item in await listed(page)] async for page in rest] == [[2 * MIB]]
    await refused(400, "InvalidContinuationToken", file.list_ranges().by_page("x").page())

    await file.clear_range(0, 65_536)
    assert await file.get_ranges() == both[1:]
    assert await (await file.download_file(0, 65_536)).readall() == bytes(65_536)
    await refused(416, "InvalidRange", file.clear_range(4 * MIB, 512))
    none = share.get_file_client("none")
    await refused(404, "ResourceNotFound", none.get_ranges())
    await refused(404, "ResourceNotFound", listed(none.list_ranges()))


async def changes(share):
    file = share.get_file_client("changes")
    await file.create_file(MIB)
    for place in (0, 512 << 10):
        await file.upload_range(b"a" * 4096, place, 4096)
    taken = await share.create_snapshot()
    await file.upload_range(b"b" * 4096, 65_536, 4096)
    await file.clear_range(512 << 10, 4096)
    written, cleared = (65_536, 65_536 + 4095), (512 << 10, (512 << 10) + 4095)
    none = "2020-01-01T00:00:00.0000000Z"
    changed, gone = await file.get_ranges_diff(taken)
    assert [(item["start"], item["end"]) for item in changed] == [written]
    assert [(item["start"], item["end"]) for item in gone] == [cleared]
    await refused(409, "PreviousSnapshotNotFound", file.get_ranges_diff(none))
    found = await listed(file.list_ranges_diff(taken))
    seen = [(item.start, item.end, item.cleared) for item in found]
    assert seen == [(*written, False), (*cleared, True)]
    await refused(409, "PreviousSnapshotNotFound", listed(file.list_ranges_diff(none)))


async def cut_short(it, share):
    """The file changes, or goes, when the first piece of a download is there."""
    whole = share.get_file_client("cut")
    await whole.upload_file(bytes(100_000))
    async with it.opened("ShareFileClient", "content", "cut", credential=it.key, **PIECES) as file:
        stream = await file.download_file()
        await whole.upload_range(b"x", 0, 1)
        try:
            await stream.readall()
        except ResourceModifiedError:
            pass
        else:
            raise AssertionError("two versions of a file were read as one")
        streams = [await file.download_file() for _ in range(6)]
        await whole.delete_file()
        for call in (
            streams[0].readall(),
            streams[1].readinto(io.BytesIO()),
            streams[2].content_as_bytes(),
            streams[3].content_as_text(),
            streams[4].download_to_stream(io.BytesIO()),
            listed(streams[5].chunks()),
        ):
            await refused(404, "ResourceNotFound", call)
