"""A file: create, look, set, rename, delete; and the links that only NFS shares have."""

import datetime

from azure.storage.fileshare import ContentSettings, NTFSAttributes
from checks import recent, refused
from directories import PAST
from faces import listed
from shares import SDDL

SETTINGS = {
    "content_type": "text/plain; charset=utf-8",
    "content_encoding": "identity",
    "content_language": "de",
    "content_disposition": 'attachment; filename="a.txt"',
    "cache_control": "no-store",
    "content_md5": bytearray(range(16)),
}


async def play(it):
    share = await it.service.create_share("files")
    await life(it, share)
    await created(share)
    await settings(share)
    await metadata(share)
    await renames(share)
    await read_only(share)
    await links(share)


async def life(it, share):
    file = share.get_file_client("life.txt")
    assert not await file.exists()
    await refused(404, "ResourceNotFound", file.get_file_properties())
    made = await file.create_file(7)
    assert await file.exists()
    got = await file.get_file_properties()
    assert (got.name, got.path, got.share, got.size) == ("life.txt", "life.txt", "files", 7)
    assert (got.file_type, got.server_encrypted) == ("File", True)
    assert (got.etag, got.file_id) == (made["etag"], made["file_id"])
    assert str(got.file_attributes) == "Archive" and got.metadata == {}
    assert got.content_settings.content_type == "application/octet-stream"
    assert got.content_settings.content_md5 is None and got.copy.id is None
    assert (got.lease.state, got.lease.status) == ("available", "unlocked")
    for time in (got.last_modified, got.creation_time, got.last_write_time, got.change_time):
        recent(time)
    assert await (await file.download_file()).readall() == bytes(7)
    # Create again: all that was is gone.
    await file.create_file(2)
    again = await file.get_file_properties()
    assert again.size == 2 and again.etag != got.etag
    await refused(404, "ParentNotFound", share.get_file_client("no/where").create_file(0))
    await share.create_directory("dir")
    await refused(409, "ResourceTypeMismatch", share.get_file_client("dir").create_file(0))
    await file.delete_file()
    await refused(404, "ResourceNotFound", file.delete_file())
    assert not await listed(share.list_directories_and_files(name_starts_with="life"))
    away = it.stranger.get_share_client("files").get_file_client("life.txt")
    await refused(403, "AuthenticationFailed", away.exists())


async def created(share):
    key = await share.create_permission_for_share(SDDL)
    file = share.get_file_client("created.txt")
    await file.create_file(
        4,
        file_attributes=NTFSAttributes(hidden=True, archive=True),
        file_creation_time=PAST,
        file_last_write_time=PAST + datetime.timedelta(days=1),
        file_change_time=PAST + datetime.timedelta(days=2),
        permission_key=key,
        metadata={"Made": "so"},
        content_settings=ContentSettings(**SETTINGS),
        data=b"data",
    )
    got = await file.get_file_properties()
    assert (got.creation_time, got.last_write_time - PAST) == (PAST, datetime.timedelta(days=1))
    assert got.change_time == PAST + datetime.timedelta(days=2)
    assert set(str(got.file_attributes).replace(" ", "").split("|")) == {"Hidden", "Archive"}
    assert got.permission_key == key and list(got.metadata.values()) == ["so"]
    assert dict(got.content_settings) == SETTINGS
    stream = await file.download_file()
    assert await stream.readall() == b"data"
    assert stream.properties.content_settings.content_language == "de"
    await refused(400, "FileInvalidPermission", file.create_file(0, file_permission="none at all"))


async def settings(share):
    file = share.get_file_client("set.txt")
    await file.upload_file(b"x" * 1000, content_settings=ContentSettings(**SETTINGS))
    first = await file.get_file_properties()
    # A resize keeps the headers; setting some clears the others.
    await file.resize_file(1500)
    second = await file.get_file_properties()
    assert second.size == 1500 and dict(second.content_settings) == SETTINGS
    assert second.etag != first.etag
    data = await (await file.download_file()).readall()
    assert data == b"x" * 1000 + bytes(500)
    await file.resize_file(3)
    assert await (await file.download_file()).readall() == b"xxx"
    await file.set_http_headers(
        ContentSettings(content_type="image/png"),
        file_attributes="None",
        file_creation_time=PAST,
        file_last_write_time=PAST,
        file_change_time="now",
        size=4,
    )
    third = await file.get_file_properties()
    assert third.size == 4 and third.content_settings.content_type == "image/png"
    assert third.content_settings.content_language is None
    assert third.content_settings.content_md5 is None
    assert (third.creation_time, third.last_write_time) == (PAST, PAST)
    recent(third.change_time)
    empty, bad = ContentSettings(), share.get_file_client("none")
    await refused(400, "InvalidHeaderValue", file.set_http_headers(empty, file_attributes="Loud"))
    await refused(404, "ResourceNotFound", bad.set_http_headers(empty))
    await refused(404, "ResourceNotFound", bad.resize_file(1))


async def metadata(share):
    file = share.get_file_client("meta.txt")
    await file.upload_file(b"", metadata={"Before": "1"})
    answer = await file.set_file_metadata({"Mixed": "Case", "_x": "a=b;c"})
    got = await file.get_file_properties()
    assert got.etag == answer["etag"] and sorted(got.metadata.values()) == ["Case", "a=b;c"]
    assert got.metadata == {"Mixed": "Case", "_x": "a=b;c"}
    await file.set_file_metadata()
    assert (await file.get_file_properties()).metadata == {}
    await refused(400, "InvalidMetadata", file.set_file_metadata({"a-b": "c"}))
    await refused(400, "MetadataTooLarge", file.set_file_metadata({"a": "x" * 8192}))


async def renames(share):
    old = share.get_file_client("old.txt")
    await old.upload_file(b"old", metadata={"a": "1"})
    await share.get_file_client("taken.txt").upload_file(b"taken")
    await refused(409, "ResourceAlreadyExists", old.rename_file("taken.txt"))
    await refused(404, "ParentNotFound", old.rename_file("no/where.txt"))
    await refused(404, "ResourceNotFound", share.get_file_client("none").rename_file("x"))
    before = await old.get_file_properties()
    new = await old.rename_file("taken.txt", overwrite=True)
    assert new.file_name == "taken.txt" and not await old.exists()
    assert await (await new.download_file()).readall() == b"old"
    got = await new.get_file_properties()
    assert got.metadata == {"a": "1"} and got.file_id == before.file_id
    await share.create_directory("deep")
    moved = await new.rename_file(
        "deep/näme & ünder.txt",
        metadata={"b": "2"},
        content_type="text/x-moved",
        file_attributes="Hidden",
        file_creation_time=PAST,
    )
    got = await moved.get_file_properties()
    assert got.metadata == {"b": "2"} and got.content_settings.content_type == "text/x-moved"
    assert got.creation_time == PAST and "Hidden" in str(got.file_attributes)


async def read_only(share):
    file = share.get_file_client("fixed.txt")
    await file.upload_file(b"fixed")
    await file.set_http_headers(ContentSettings(), file_attributes="ReadOnly")
    await refused(409, "ReadOnlyAttribute", file.upload_range(b"x", 0, 1))
    await refused(409, "ReadOnlyAttribute", file.delete_file())
    await refused(409, "ReadOnlyAttribute", file.resize_file(1))
    onto = share.get_file_client("onto.txt")
    await onto.upload_file(b"")
    await refused(409, "ReadOnlyAttribute", onto.rename_file("fixed.txt", overwrite=True))
    await onto.rename_file("fixed.txt", overwrite=True, ignore_read_only=True)
    assert (await file.get_file_properties()).size == 0


async def links(share):
    file = share.get_file_client("link")
    target = share.get_file_client("link-target")
    await target.upload_file(b"target")
    made = await file.create_symlink("link-target", metadata={"a": "1"})
    assert made["file_file_type"] == "SymLink" and "file_attributes" not in made
    assert (await file.get_symlink())["link_text"] == "link-target"
    await refused(409, "ResourceAlreadyExists", file.create_symlink("link-target"))
    await file.delete_file()
    await refused(404, "ResourceNotFound", file.get_symlink())
    made = await file.create_hardlink("link-target")
    assert (made["file_file_type"], made["link_count"]) == ("Regular", 2)
    assert await (await file.download_file()).readall() == b"target"
    below = share.get_file_client("no-such-directory/link")
    await refused(404, "ParentNotFound", below.create_hardlink("link-target"))
    await refused(404, "ParentNotFound", below.create_symlink("link-target"))
    await refused(404, "ParentNotFound", below.get_symlink())
