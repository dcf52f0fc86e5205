"""A directory: create, look, set, list, rename, delete, and what is in it."""

import datetime

from azure.storage.fileshare import NTFSAttributes
from checks import moment, recent, refused
from faces import listed
from shares import SDDL

PAST = datetime.datetime(2020, 5, 17, 10, 30, 1, 234567, tzinfo=datetime.timezone.utc)


async def play(it):
    share = await it.service.create_share("directories")
    await life(it, share)
    await properties(share)
    await lists(share)
    await names(it, share)
    await renames(share)
    await walk(share)


async def life(it, share):
    top = share.get_directory_client("top")
    assert not await top.exists()
    await refused(404, "ResourceNotFound", top.get_directory_properties())
    made = await top.create_directory(metadata={"Kind": "top"})
    assert await top.exists() and made["etag"]
    await refused(409, "ResourceAlreadyExists", top.create_directory())
    got = await top.get_directory_properties()
    assert got.is_directory and got.etag == made["etag"] and got.file_id == made["file_id"]
    assert got.parent_id == made["file_parent_id"] and got.server_encrypted
    assert str(got.file_attributes) == "Directory"
    for time in (got.last_modified, got.creation_time, got.last_write_time, got.change_time):
        recent(time)

    below = await top.create_subdirectory("below", metadata={"a": "1"})
    assert (await below.get_directory_properties()).metadata == {"a": "1"}
    assert (await below.get_directory_properties()).parent_id == got.file_id
    await refused(404, "ParentNotFound", top.create_subdirectory("no/where"))
    file = await top.upload_file("f.txt", b"in a directory", metadata={"b": "2"})
    assert (await file.get_file_properties()).metadata == {"b": "2"}
    await refused(404, "ParentNotFound", below.get_subdirectory_client("no").upload_file("f", b""))
    no_directory = share.get_directory_client("top/f.txt")
    await refused(409, "ResourceTypeMismatch", no_directory.delete_directory())
    await refused(404, "ResourceNotFound", share.get_file_client("top/below").get_file_properties())
    await refused(409, "DirectoryNotEmpty", top.delete_directory())
    await top.delete_file("F.TXT")
    await refused(404, "ResourceNotFound", top.delete_file("f.txt"))
    await top.delete_subdirectory("below")
    await refused(404, "ResourceNotFound", top.delete_subdirectory("below"))
    await top.delete_directory()
    await refused(404, "ResourceNotFound", top.delete_directory())
    away = it.stranger.get_share_client("directories").get_directory_client("top")
    await refused(403, "AuthenticationFailed", away.exists())


async def properties(share):
    key = await share.create_permission_for_share(SDDL)
    directory = share.get_directory_client("set")
    await directory.create_directory(
        file_attributes=NTFSAttributes(hidden=True, directory=True),
        file_creation_time=PAST,
        file_last_write_time=PAST,
        file_permission=SDDL,
    )
    first = await directory.get_directory_properties()
    assert (first.creation_time, first.last_write_time) == (PAST, PAST)
    assert set(str(first.file_attributes).replace(" ", "").split("|")) == {"Hidden", "Directory"}
    assert first.permission_key == key
    later = PAST + datetime.timedelta(days=1)
    await directory.set_http_headers(
        file_attributes="System|Directory",
        file_creation_time=later,
        file_last_write_time="preserve",
        permission_key=key,
        file_change_time=later,
    )
    second = await directory.get_directory_properties()
    assert (second.creation_time, second.last_write_time) == (later, PAST)
    assert second.change_time == later and "System" in str(second.file_attributes)
    await refused(400, "InvalidHeaderValue", directory.set_http_headers(file_attributes="Sticky"))
    await refused(400, "FileInvalidPermissionKey", directory.set_http_headers(permission_key="1*2"))

    answer = await directory.set_directory_metadata({"Upper": "A", "lower": "b"})
    third = await directory.get_directory_properties()
    assert third.etag == answer["etag"] != second.etag
    assert sorted(third.metadata.values()) == ["A", "b"]
    assert third.metadata == {"Upper": "A", "lower": "b"}
    await directory.set_directory_metadata({})
    assert (await directory.get_directory_properties()).metadata == {}
    await refused(400, "InvalidMetadata", directory.set_directory_metadata({"1st": "x"}))
    nowhere = share.get_directory_client("nowhere")
    await refused(404, "ResourceNotFound", nowhere.set_directory_metadata({"a": "1"}))


async def lists(share):
    shelf = await share.create_directory("shelf")
    for number in range(7):
        await shelf.upload_file(f"book-{number}", b"x" * number)
    await shelf.create_subdirectory("box")
    everything = await listed(shelf.list_directories_and_files())
    assert [item.name for item in everything] == ["box", *(f"book-{n}" for n in range(7))]
    assert [item.size for item in everything[1:]] == list(range(7))
    assert everything[0].etag is None and everything[0].file_id

    pages = shelf.list_directories_and_files("BOOK", results_per_page=3).by_page()
    assert [item.name for item in await pages.page()] == ["book-0", "book-1", "book-2"]
    again = shelf.list_directories_and_files("BOOK", results_per_page=3).by_page(pages.token)
    rest = [[item.name for item in await listed(page)] async for page in again]
    assert rest == [["book-3", "book-4", "book-5"], ["book-6"]]

    include = ["timestamps", "Etag", "Attributes", "PermissionKey"]
    full = await listed(
        shelf.list_directories_and_files("b", include=include, include_extended_info=True)
    )
    for item in full:
        for time in (item.creation_time, item.last_write_time, item.last_access_time):
            recent(time)
        recent(item.change_time)
        recent(item.last_modified)
    assert full[0].file_attributes == "Directory" and full[1].file_attributes == "Archive"
    seen = await shelf.get_file_client("book-3").get_file_properties()
    (book,) = [item for item in full if item.name == "book-3"]
    assert (book.etag, book.file_id) == (seen.etag, seen.file_id)
    assert moment(book.last_write_time) == seen.last_write_time

    nowhere = share.get_directory_client("nowhere")
    await refused(404, "ResourceNotFound", listed(nowhere.list_directories_and_files()))
    stray = shelf.list_directories_and_files().by_page("%%%")
    await refused(400, "InvalidContinuationToken", stray.page())


async def names(it, share):
    odd = ["a b", "50%", "%41", "plus+", "é ü", "a&b", "#1", "日本", "semi;colon", "(it's)", "[x]"]
    home = await share.create_directory("odd näme & more")

    def file(name):
        # Not from `home`: aio signs another path than it sends for a client made by a client made
        # by a client (azure-sdk-for-python issue 11028), which the service refuses as well.
        return share.get_file_client(f"{home.directory_path}/{name}")

    for name in odd:
        await file(name).upload_file(name)
    assert {item.name for item in await listed(home.list_directories_and_files())} == set(odd)
    for name in odd:
        assert await (await file(name).download_file()).readall() == name.encode()
    # Case-insensitive, and the first spelling stays.
    assert (await file("É Ü").get_file_properties()).size == len("é ü".encode())
    await refused(400, "InvalidResourceName", file("a:b").upload_file(b""))
    # A dot at the end goes, unless the client says that it is meant.
    await file("dot.").upload_file(b"1")
    assert (await file("dot").get_file_properties()).size == 1
    at = ("ShareFileClient", "directories", f"{home.directory_path}/dot.")
    async with it.opened(*at, credential=it.key, allow_trailing_dot=True) as dotted:
        await dotted.upload_file(b"22")
    found = await listed(home.list_directories_and_files(name_starts_with="dot"))
    assert [(item.name, item.size) for item in found] == [("dot", 1), ("dot.", 2)]


async def renames(share):
    old = await share.create_directory("old")
    await old.upload_file("f", b"moved along")
    await share.create_directory("taken")
    await refused(409, "ResourceAlreadyExists", old.rename_directory("taken"))
    await refused(404, "ParentNotFound", old.rename_directory("no/where"))
    await refused(404, "ResourceNotFound", share.get_directory_client("none").rename_directory("x"))
    new = await old.rename_directory("taken/new", metadata={"was": "old"}, file_creation_time=PAST)
    assert new.directory_path == "taken/new" and not await old.exists()
    got = await new.get_directory_properties()
    assert got.metadata == {"was": "old"} and got.creation_time == PAST
    data = await (await new.get_file_client("f").download_file()).readall()
    assert data == b"moved along"
    # By case alone.
    upper = await new.rename_directory("taken/NEW")
    (seen,) = await listed(share.list_directories_and_files("taken"))
    assert seen.name == "NEW" and await upper.exists()


async def walk(share):
    """A tree as people walk it: no method of the SDK does."""
    root = await share.create_directory("walk")
    wanted = set()
    for outer in "ab":
        branch = await root.create_subdirectory(outer)
        for inner in "cd":
            leaf = await branch.create_subdirectory(inner)
            await leaf.upload_file("leaf", b"")
            wanted.add(f"walk/{outer}/{inner}/leaf")
    found, left = set(), [root]
    while left:
        here = left.pop()
        async for item in here.list_directories_and_files():
            if item.is_directory:
                left.append(here.get_subdirectory_client(item.name))
            else:
                found.add(f"{here.directory_path}/{item.name}")
    assert found == wanted
