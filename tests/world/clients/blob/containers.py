"""Containers: life, metadata, access policies, and the blobs in them, listed and in batches."""

from asserting import text, whole
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    AccessPolicy,
    BlobType,
    ContainerSasPermissions,
    PublicAccess,
)
from checks import HOUR, now, recent, refused
from faces import listed


async def play(it):
    await life(it)
    await policies(it)
    await lists(it)
    await batches(it)


async def life(it):
    container = it.service.get_container_client("living")
    assert not await container.exists()
    await refused(404, "ContainerNotFound", container.get_container_properties())
    await refused(404, "ContainerNotFound", container.delete_container())
    made = await container.create_container(metadata={"Colour": "Blue"})
    assert made["etag"] and made["last_modified"]
    assert await container.exists()
    await refused(409, "ContainerAlreadyExists", container.create_container())
    await refused(400, "InvalidMetadata", container.set_container_metadata({"1a": "x"}))
    seen = await container.get_container_properties()
    assert (seen.name, seen.metadata, seen.etag) == ("living", {"Colour": "Blue"}, made["etag"])
    assert (seen.lease.status, seen.lease.state) == ("unlocked", "available")
    assert seen.public_access is None and seen.has_legal_hold is False, vars(seen)
    recent(seen.last_modified)
    moved = await container.set_container_metadata({"Shape": "round"})
    assert moved["etag"] != made["etag"]
    assert (await container.get_container_properties()).metadata == {"Shape": "round"}
    await refused(
        412,
        "ConditionNotMet",
        container.set_container_metadata({"a": "b"}, if_modified_since=now() + HOUR),
    )
    said = await container.get_account_information()
    assert said["sku_name"], said
    stranger = it.stranger.get_container_client("living")
    await refused(403, "AuthenticationFailed", stranger.exists())
    await refused(403, "AuthenticationFailed", stranger.get_account_information())
    await refused(
        404,
        "ContainerNotFound",
        it.service.get_container_client("nowhere").set_container_metadata({}),
    )
    await container.delete_container()
    # The name is free at once.
    await container.create_container()
    await container.delete_container()


async def policies(it):
    container = await it.service.create_container("guarded")
    got = await container.get_container_access_policy()
    assert got == {"public_access": None, "signed_identifiers": []}, got
    policy = AccessPolicy(
        permission=ContainerSasPermissions(read=True, list=True),
        start=now() - HOUR,
        expiry=now() + HOUR,
    )
    done = await container.set_container_access_policy(
        {"one": policy, "empty": AccessPolicy()}, public_access=PublicAccess.BLOB
    )
    assert done["etag"]
    got = await container.get_container_access_policy()
    assert got["public_access"] == "blob"
    kept = {one.id: one.access_policy for one in got["signed_identifiers"]}
    assert str(kept["one"].permission) == "rl" and set(kept) == {"one", "empty"}, kept
    await refused(
        412,
        "ConditionNotMet",
        container.set_container_access_policy({}, if_unmodified_since=now() - HOUR),
    )
    # The SDK itself counts to five.
    try:
        await container.set_container_access_policy({str(n): policy for n in range(6)})
        raise AssertionError("six policies")
    except ValueError:
        pass
    await refused(
        400, "InvalidXmlDocument", container.set_container_access_policy({"x" * 65: policy})
    )
    await container.set_container_access_policy({})
    got = await container.get_container_access_policy()
    assert got == {"public_access": None, "signed_identifiers": []}, got
    nowhere = it.service.get_container_client("nowhere")
    await refused(404, "ContainerNotFound", nowhere.get_container_access_policy())
    await refused(404, "ContainerNotFound", nowhere.set_container_access_policy({}))
    await container.delete_container()


NAMES = ["a", "a b", "a/1", "a/2/x", "a/2/y", "b+c", "b/1", "c%2Fd", "é", "ü&<>"]


async def lists(it):
    container = await it.service.create_container("listed")
    for name in NAMES:
        blob = await container.upload_blob(
            name, name.encode(), metadata={"name": "x"}, tags={"t": "1"}
        )
        assert blob.blob_name == name
    order = sorted(NAMES, key=str.encode)
    blobs = await listed(container.list_blobs())
    assert [one.name for one in blobs] == order, [one.name for one in blobs]
    assert blobs[0].metadata == {} or blobs[0].metadata is None
    first = blobs[0]
    assert (first.container, first.size, first.blob_type) == ("listed", 1, BlobType.BLOCKBLOB)
    assert first.etag and not first.etag.startswith('"') and first.blob_tier == "Hot", first.etag
    assert first.content_settings.content_type == "application/octet-stream"
    assert first.content_settings.content_md5, first.content_settings
    assert first.lease.state == "available" and first.server_encrypted is True
    recent(first.creation_time)
    blobs = await listed(container.list_blobs("a/", include=["metadata", "tags"]))
    assert [one.name for one in blobs] == ["a/1", "a/2/x", "a/2/y"]
    assert blobs[0].metadata == {"name": "x"} and blobs[0].tags == {"t": "1"}
    for blob in blobs:
        assert await text(container.get_blob_client(blob)) == blob.name.encode()
    assert [one async for one in container.list_blob_names()] == order
    pages = container.list_blobs(results_per_page=3).by_page()
    sizes = [len(await listed(page)) async for page in pages]
    assert sizes == [3, 3, 3, 1], sizes
    some = container.list_blob_names(results_per_page=4).by_page()
    assert await some.page() == order[:4]
    rest = container.list_blob_names(results_per_page=4).by_page(some.token)
    assert [name async for page in rest for name in await listed(page)] == order[4:]

    walked = await listed(container.walk_blobs())
    prefixes = [one.name for one in walked if type(one).__name__ == "BlobPrefix"]
    assert prefixes == ["a/", "b/"], prefixes
    assert [one.name for one in walked if type(one).__name__ != "BlobPrefix"] == [
        name for name in order if "/" not in name
    ]
    inner = await listed(container.walk_blobs("a/"))
    # The SDK itself puts prefixes first.
    assert [one.name for one in inner] == ["a/2/", "a/1"], [one.name for one in inner]
    nowhere = it.service.get_container_client("nowhere")
    for call in (nowhere.list_blobs(), nowhere.list_blob_names(), nowhere.walk_blobs()):
        await refused(404, "ContainerNotFound", listed(call))
    bad = container.list_blobs(results_per_page=0)
    await refused(400, "OutOfRangeQueryParameterValue", listed(bad))

    assert await whole(await container.download_blob("a b")) == b"a b"
    await refused(404, "BlobNotFound", container.download_blob("none"))
    await container.delete_blob("a b")
    await refused(404, "BlobNotFound", container.delete_blob("a b"))
    await refused(409, "BlobAlreadyExists", container.upload_blob("a", b"again"))
    await refused(404, "ContainerNotFound", nowhere.upload_blob("a", b"x"))
    await refused(
        404, "ContainerNotFound", nowhere.find_blobs_by_tags("\"t\" = '1'").by_page().page()
    )
    found = [one.name async for one in container.find_blobs_by_tags("\"t\" = '1'")]
    assert sorted(found, key=str.encode) == [name for name in order if name != "a b"], found
    await container.delete_container()


async def batches(it):
    container = await it.service.create_container("batches")
    names = [f"x {n}/é" for n in range(5)]
    for name in names:
        await container.upload_blob(name, b"x")
    answers = await listed(await container.set_standard_blob_tier_blobs("Cool", *names[:2]))
    assert [one.status_code for one in answers] == [200, 200], answers
    seen = {one.name: one.blob_tier for one in await listed(container.list_blobs())}
    assert [seen[name] for name in names[:3]] == ["Cool", "Cool", "Hot"], seen
    answers = await listed(
        await container.delete_blobs(names[0], "none", names[1], raise_on_any_failure=False)
    )
    assert [one.status_code for one in answers] == [202, 404, 202]
    try:
        await container.delete_blobs(names[2], "none")
        raise AssertionError("one was missing")
    except HttpResponseError as error:
        parts = await listed(error.parts)
        assert [part.status_code for part in parts] == [202, 404], parts
    try:
        await container.set_standard_blob_tier_blobs("Hot", "none")
        raise AssertionError("it was missing")
    except HttpResponseError as error:
        assert [part.status_code for part in await listed(error.parts)] == [404]
    answers = await listed(await container.delete_blobs(*names[3:], delete_snapshots="include"))
    assert len(answers) == 2
    page = container.get_blob_client("page")
    await page.create_page_blob(512)
    try:
        await container.set_premium_page_blob_tier_blobs("P4", "page")
        raise AssertionError("no premium account")
    except HttpResponseError as error:
        assert [part.status_code for part in await listed(error.parts)] == [400]
    stranger = it.stranger.get_container_client("batches")
    await refused(403, "AuthenticationFailed", stranger.delete_blobs("page"))
    await refused(403, "AuthenticationFailed", stranger.set_standard_blob_tier_blobs("Hot", "page"))
    await container.delete_container()
