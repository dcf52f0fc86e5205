"""Copies: at once and pending, aborted, from URLs, with conditions on both sides."""

from asserting import A, text
from azure.core import MatchConditions
from checks import refused

SAME = MatchConditions.IfNotModified


async def play(it):
    container = await it.service.create_container("copies")
    source, target = (container.get_blob_client(name) for name in ("from é", "to"))
    made = await source.upload_blob(b"copied", metadata={"a": "1"}, tags={"t": "1"})
    done = await target.start_copy_from_url(source.url)
    assert done["copy_status"] == "success" and done["copy_id"], done
    seen = await target.get_blob_properties()
    assert (seen.copy.status, seen.copy.id, seen.copy.progress) == (
        "success",
        done["copy_id"],
        "6/6",
    )
    assert seen.copy.source == source.url and seen.metadata == {"a": "1"} and not seen.tag_count
    assert await text(target) == b"copied"
    await target.start_copy_from_url(source.url, tags={"u": "2"}, metadata={"b": "2"})
    assert await target.get_blob_tags() == {"u": "2"}
    await refused(
        412,
        "SourceConditionNotMet",
        target.start_copy_from_url(source.url, source_etag='"0x1"', source_match_condition=SAME),
    )
    await refused(
        412,
        "TargetConditionNotMet",
        target.start_copy_from_url(source.url, etag=made["etag"], match_condition=SAME),
    )
    await refused(
        404, "BlobNotFound", target.start_copy_from_url(container.get_blob_client("none").url)
    )
    await refused(409, "NoPendingCopyOperation", target.abort_copy(done["copy_id"]))
    await refused(404, "BlobNotFound", container.get_blob_client("none").abort_copy(A))
    await at_once(it, container, source)
    await pending(it)
    snapshot = await source.create_snapshot()
    await source.upload_blob(b"later", overwrite=True)
    await source.start_copy_from_url(f"{source.url}?snapshot={snapshot['snapshot']}")
    assert await text(source) == b"copied"
    await source.delete_blob(delete_snapshots="include")
    await container.delete_container()


async def at_once(it, container, source):
    target, url = container.get_blob_client("at once"), it.readable(source)
    none = it.readable(container.get_blob_client("none"))
    done = await target.start_copy_from_url(url, requires_sync=True)
    assert done["copy_status"] == "success", done
    await refused(
        404, "CannotVerifyCopySource", target.start_copy_from_url(none, requires_sync=True)
    )
    target = container.get_blob_client("put from url")
    done = await target.upload_blob_from_url(url)
    assert done["etag"] and await text(target) == b"copied"
    assert (await target.get_blob_properties()).metadata == {"a": "1"}
    await refused(409, "BlobAlreadyExists", target.upload_blob_from_url(url))
    await target.upload_blob_from_url(
        url,
        overwrite=True,
        metadata={"z": "1"},
        include_source_blob_properties=False,
        tags={"t": "2"},
    )
    assert (await target.get_blob_properties()).metadata == {"z": "1"}
    await refused(
        412,
        "SourceConditionNotMet",
        target.upload_blob_from_url(
            url, overwrite=True, source_etag='"0x1"', source_match_condition=SAME
        ),
    )
    await refused(404, "CannotVerifyCopySource", target.upload_blob_from_url(none, overwrite=True))


async def pending(it):
    """The second server leaves copies pending."""
    container = await it.versioned.create_container("pending")
    source, target = (container.get_blob_client(name) for name in ("from", "to"))
    await source.upload_blob(b"copied")
    done = await target.start_copy_from_url(source.url)
    assert done["copy_status"] == "pending", done
    seen = await target.get_blob_properties()
    assert (seen.copy.status, seen.size) == ("pending", 0)
    await refused(409, "PendingCopyOperation", target.upload_blob(b"x", overwrite=True))
    await refused(409, "PendingCopyOperation", target.acquire_lease())
    await refused(409, "CopyIdMismatch", target.abort_copy(A))
    await target.abort_copy(done)
    seen = await target.get_blob_properties()
    assert (seen.copy.status, seen.copy.id, seen.size) == ("aborted", done["copy_id"], 0)
    await container.delete_container()
