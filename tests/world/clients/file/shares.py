"""A share: properties, metadata, policies, permissions, statistics, snapshots."""

import base64
import datetime

from azure.storage.fileshare import AccessPolicy, ShareSasPermissions
from checks import moment, now, recent, refused
from faces import listed

SDDL = "O:SYG:SYD:(A;;FA;;;SY)(A;;FA;;;BA)"
# A security descriptor, self-relative, with nothing in it.
BINARY = base64.b64encode(b"\x01\x00\x00\x80" + bytes(16)).decode()


async def play(it):
    await life(it)
    await settings(it)
    await policies(it)
    await permissions(it)
    await contents(it)
    await snapshots(it)


async def life(it):
    share = it.service.get_share_client("life")
    await refused(404, "ShareNotFound", share.get_share_properties())
    await refused(404, "ShareNotFound", it.service.get_share_client("never-made").delete_share())
    made = await share.create_share(
        metadata={"Owner": "Ann"}, quota=3, access_tier="Hot", protocols="SMB"
    )
    await refused(409, "ShareAlreadyExists", share.create_share())
    properties = await share.get_share_properties()
    assert (properties.name, properties.quota) == ("life", 3)
    assert (properties.access_tier, properties.protocols) == ("Hot", ["SMB"])
    assert list(properties.metadata.values()) == ["Ann"]
    assert properties.etag == made["etag"] and properties.last_modified == made["last_modified"]
    recent(properties.last_modified)
    lease = properties.lease
    assert (lease.state, lease.status, lease.duration) == ("available", "unlocked", None)
    await share.delete_share()
    # While a deletion is fresh it is accepted again, as by the service.
    await share.delete_share()
    await refused(404, "ShareNotFound", share.get_share_properties())


async def settings(it):
    share = await it.service.create_share("settings")
    first = await share.get_share_properties()
    assert (await share.set_share_quota(9))["etag"] != first.etag
    await refused(400, "InvalidHeaderValue", share.set_share_quota(0))
    await share.set_share_properties(access_tier="Cool", quota=11)
    await refused(400, "InvalidHeaderValue", share.set_share_properties(access_tier="Tepid"))
    set_ = await share.get_share_properties()
    assert (set_.quota, set_.access_tier) == (11, "Cool")

    await share.set_share_metadata({"One": "1", "two": "Zwei & drei"})
    got = (await share.get_share_properties()).metadata
    assert sorted(got.values()) == ["1", "Zwei & drei"]
    assert sorted(got) == ["One", "two"]
    await share.set_share_metadata({})
    assert (await share.get_share_properties()).metadata == {}
    await refused(400, "InvalidMetadata", share.set_share_metadata({"no-name": "1"}))
    await refused(400, "MetadataTooLarge", share.set_share_metadata({"a": "x" * 8192}))

    # Counted at the first question, and again only now and then.
    await share.get_file_client("full").upload_file(b"x" * 100_000)
    assert await share.get_share_stats() == 100_000
    nowhere = it.service.get_share_client("nowhere")
    await refused(404, "ShareNotFound", nowhere.get_share_stats())
    await refused(404, "ShareNotFound", nowhere.create_snapshot())
    await refused(404, "ShareNotFound", nowhere.get_share_access_policy())


async def policies(it):
    share = await it.service.create_share("policies")
    assert (await share.get_share_access_policy())["signed_identifiers"] == []
    start = now().replace(microsecond=0)
    read = AccessPolicy(ShareSasPermissions(read=True), start + datetime.timedelta(hours=1), start)
    await share.set_share_access_policy({"read": read, "empty": None})
    first, second = (await share.get_share_access_policy())["signed_identifiers"]
    assert (first.id, first.access_policy.permission) == ("read", "r")
    assert moment(first.access_policy.start) == start
    assert second.id == "empty"
    await refused(400, "InvalidXmlDocument", share.set_share_access_policy({"x" * 65: read}))
    await share.set_share_access_policy({})
    assert (await share.get_share_access_policy())["signed_identifiers"] == []


async def permissions(it):
    share = await it.service.create_share("permissions")
    key = await share.create_permission_for_share(SDDL)
    assert await share.get_permission_for_share(key) == SDDL
    # The SDK cannot send a binary one here: it hands the keyword for it to its transport.
    file = share.get_file_client("bound")
    await file.create_file(0, file_permission=BINARY, file_permission_format="Binary")
    other = (await file.get_file_properties()).permission_key
    assert other and other != key
    again = await share.get_permission_for_share(other, file_permission_format="Binary")
    assert again == BINARY
    # One that was given none has one all the same.
    await file.create_file(0)
    usual = (await file.get_file_properties()).permission_key
    assert usual not in (key, other)
    assert (await share.get_permission_for_share(usual)).startswith("O:")
    await refused(400, "FileInvalidPermission", share.create_permission_for_share("nonsense"))
    await refused(400, "FileInvalidPermissionKey", share.get_permission_for_share("1*2"))


async def contents(it):
    share = await it.service.create_share("contents")
    for name in ("alpha", "beta"):
        await share.create_directory(name, metadata={"of": name})
    await refused(409, "ResourceAlreadyExists", share.create_directory("ALPHA"))
    await refused(404, "ParentNotFound", share.create_directory("no/where"))
    await share.get_file_client("alpha/one.txt").upload_file("one")
    await share.get_file_client("also.txt").upload_file(b"")
    found = await listed(share.list_directories_and_files())
    assert [(item.name, item.is_directory) for item in found] == [
        ("alpha", True),
        ("beta", True),
        ("also.txt", False),
    ]
    below = await listed(share.list_directories_and_files("alpha", name_starts_with="ON"))
    assert [(item.name, item.size) for item in below] == [("one.txt", 3)]
    await refused(404, "ResourceNotFound", listed(share.list_directories_and_files("gamma")))
    await refused(409, "DirectoryNotEmpty", share.delete_directory("alpha"))
    await share.delete_directory("beta")
    await refused(404, "ResourceNotFound", share.delete_directory("beta"))
    root = share.get_directory_client()
    assert await root.exists() and (await root.get_directory_properties()).is_directory


async def snapshots(it):
    share = await it.service.create_share("snapshots", metadata={"a": "1"})
    file = share.get_file_client("story.txt")
    await file.upload_file(b"before")
    taken = await share.create_snapshot(metadata={"b": "2"})
    recent(taken["snapshot"])
    await file.upload_file(b"after that")
    past = it.service.get_share_client("snapshots", snapshot=taken)
    assert (await past.get_share_properties()).metadata == {"b": "2"}
    old = past.get_file_client("story.txt")
    assert await (await old.download_file()).readall() == b"before"
    properties = await old.get_file_properties()
    assert (properties.size, properties.snapshot) == (6, taken["snapshot"])
    (item,) = await listed(past.list_directories_and_files())
    assert (item.name, item.size) == ("story.txt", 6)
    await refused(400, "ShareSnapshotOperationNotSupported", old.upload_range(b"x", 0, 1))
    await refused(409, "ShareHasSnapshots", share.delete_share())
    await past.delete_share()
    await refused(404, "ShareSnapshotNotFound", past.get_share_properties())
    await refused(404, "ShareSnapshotNotFound", old.download_file())

    await share.create_snapshot()
    await share.delete_share(delete_snapshots="include")
    await refused(404, "ShareNotFound", share.get_share_properties())
