"""Content of block and append blobs: small and large, in parallel, in blocks; conditions."""

import io
import os

from asserting import text, whole
from azure.core import MatchConditions
from azure.storage.blob import BlobBlock, BlobType, ContentSettings, StandardBlobTier
from checks import HOUR, recent, refused

MIB = 1 << 20
SAME, OTHER = MatchConditions.IfNotModified, MatchConditions.IfModified
MISSING, PRESENT = MatchConditions.IfMissing, MatchConditions.IfPresent


async def play(it):
    container = await it.service.create_container("content")
    await small(it, container)
    await large(it, container)
    await blocks(it, container)
    await append(it, container)
    await conditions(it, container)
    await queries(it, container)
    await container.delete_container()


async def small(it, container):
    blob = container.get_blob_client("dir/small é")
    assert not await blob.exists()
    await refused(404, "BlobNotFound", blob.get_blob_properties())
    await refused(404, "BlobNotFound", blob.download_blob())
    settings = ContentSettings(
        content_type="text/plain",
        content_encoding="identity",
        content_language="de",
        content_disposition="inline",
        cache_control="no-store",
    )
    made = await blob.upload_blob(
        b"hello", metadata={"Kind": "Greeting"}, content_settings=settings, validate_content=True
    )
    assert made["etag"] and made["request_server_encrypted"] is True, made
    assert await blob.exists()
    await refused(409, "BlobAlreadyExists", blob.upload_blob(b"again"))
    await blob.upload_blob(
        b"hello again", overwrite=True, metadata={"Kind": "Greeting"}, content_settings=settings
    )
    seen = await blob.get_blob_properties()
    assert (seen.name, seen.container, seen.size) == ("dir/small é", "content", 11)
    assert seen.metadata == {"Kind": "Greeting"} and seen.blob_type == BlobType.BLOCKBLOB
    kept = seen.content_settings
    assert (kept.content_type, kept.content_encoding, kept.content_language) == (
        "text/plain",
        "identity",
        "de",
    )
    assert (kept.content_disposition, kept.cache_control) == ("inline", "no-store")
    assert kept.content_md5 and len(kept.content_md5) == 16
    assert (seen.blob_tier, seen.blob_tier_inferred) == ("Hot", True)
    assert seen.lease.state == "available" and seen.server_encrypted is True
    recent(seen.creation_time)
    recent(seen.last_modified)
    download = await blob.download_blob(validate_content=True)
    assert download.properties.etag == seen.etag and download.size == 11
    assert download.properties.metadata == {"Kind": "Greeting"}
    assert await whole(download) == b"hello again"
    assert await text(blob, offset=6, length=5) == b"again"
    assert await text(blob, offset=6, length=5, validate_content=True) == b"again"
    assert await text(blob, offset=6) == b"again"
    await refused(416, "InvalidRange", blob.download_blob(offset=11, length=1))
    await blob.set_http_headers(ContentSettings(content_type="a/b"))
    kept = (await blob.get_blob_properties()).content_settings
    assert (kept.content_type, kept.content_language, kept.content_md5) == ("a/b", None, None), kept
    moved = await blob.set_blob_metadata({"other": "1"})
    seen = await blob.get_blob_properties()
    assert seen.metadata == {"other": "1"} and seen.etag == moved["etag"]
    await refused(400, "InvalidMetadata", blob.set_blob_metadata({"a-b": "x"}))
    await refused(400, "EmptyMetadataKey", blob.set_blob_metadata({"": "x"}))
    await refused(404, "BlobNotFound", container.get_blob_client("none").set_blob_metadata({}))
    await refused(
        404,
        "BlobNotFound",
        container.get_blob_client("none").set_http_headers(ContentSettings(content_type="a/b")),
    )
    assert (await blob.get_account_information())["account_kind"]
    stranger = it.stranger.get_blob_client("content", "dir/small é")
    await refused(403, "AuthenticationFailed", stranger.get_account_information())
    await refused(403, "AuthenticationFailed", stranger.exists())
    await blob.upload_blob(b"", overwrite=True)
    assert await text(blob) == b""
    await blob.delete_blob()
    await refused(404, "BlobNotFound", blob.delete_blob())
    await refused(400, "MetadataTooLarge", blob.upload_blob(b"", metadata={"a": "x" * 8_200}))


async def large(it, container):
    """In blocks, several at once; a download in ranges, several at once."""
    name = "large"
    client = it.face.BlobClient(
        it.endpoint,
        "content",
        name,
        credential=it.key,
        retry_total=0,
        max_single_put_size=MIB,
        max_block_size=MIB,
        min_large_block_upload_threshold=MIB // 2,
        max_single_get_size=MIB,
        max_chunk_get_size=MIB,
    )
    bytes_ = os.urandom(13 * MIB + 17)
    await client.upload_blob(bytes_, max_concurrency=4)
    assert await text(client, max_concurrency=4) == bytes_
    seen = await client.get_blob_properties()
    assert seen.size == len(bytes_) and seen.content_settings.content_md5 is None
    committed, staged = await client.get_block_list("all")
    assert len(committed) == 14 and staged == [] and committed[0].size == MIB
    stream = io.BytesIO(bytes_[::-1])
    await client.upload_blob(stream, overwrite=True, max_concurrency=3, validate_content=True)
    assert await text(client, max_concurrency=3, validate_content=True) == bytes_[::-1]
    # A copy that changes while it is downloaded is not given out mixed.
    download = await client.download_blob()
    await client.upload_blob(b"other", overwrite=True)
    await refused(412, "ConditionNotMet", whole(download))
    await client.close()


async def blocks(it, container):
    blob = container.get_blob_client("blocks")
    for name, part in (("a", b"one"), ("b", b"two"), ("c", b"three")):
        await blob.stage_block(name, part, validate_content=name == "a")
    assert not await blob.exists()
    committed, staged = await blob.get_block_list("all")
    assert committed == [] and [one.id for one in staged] == ["a", "b", "c"]
    assert [one.size for one in staged] == [3, 3, 5]
    done = await blob.commit_block_list(
        [BlobBlock("c"), BlobBlock("a")],
        metadata={"m": "1"},
        tags={"t": "1"},
        content_settings=ContentSettings(content_type="x/y"),
        standard_blob_tier=StandardBlobTier.COOL,
    )
    assert done["etag"] and await text(blob) == b"threeone"
    seen = await blob.get_blob_properties()
    assert (seen.metadata, seen.tag_count, seen.blob_tier) == ({"m": "1"}, 1, "Cool")
    committed, staged = await blob.get_block_list("all")
    assert [one.id for one in committed] == ["c", "a"] and staged == []
    await refused(400, "InvalidBlockList", blob.commit_block_list([BlobBlock("b")]))
    await refused(
        409, "BlobAlreadyExists", blob.commit_block_list([BlobBlock("a")], match_condition=MISSING)
    )
    await refused(400, "InvalidBlobOrBlock", stage_two_lengths(blob))
    await refused(400, "OutOfRangeInput", blob.stage_block("x" * 65, b"x"))
    source = container.get_blob_client("source")
    await source.upload_blob(b"0123456789")
    await blob.stage_block_from_url("d", it.readable(source), source_offset=2, source_length=3)
    await blob.commit_block_list([BlobBlock("a"), BlobBlock("d")])
    assert await text(blob) == b"one234"
    missing = container.get_blob_client("none")
    await refused(
        404, "CannotVerifyCopySource", blob.stage_block_from_url("e", it.readable(missing))
    )
    await refused(404, "BlobNotFound", missing.get_block_list())
    await refused(
        404, "ContainerNotFound", it.service.get_blob_client("nowhere", "b").stage_block("a", b"x")
    )
    await blob.delete_blob()


async def stage_two_lengths(blob):
    await blob.stage_block("e", b"x")
    await blob.stage_block("longer", b"x")


async def append(it, container):
    blob = container.get_blob_client("append")
    await blob.create_append_blob(metadata={"a": "1"}, tags={"t": "1"})
    first = await blob.append_block(b"one", validate_content=True)
    assert (first["blob_append_offset"], first["blob_committed_block_count"]) == ("0", 1), first
    second = await blob.append_block(b"two", appendpos_condition=3, maxsize_condition=6)
    assert second["blob_append_offset"] == "3"
    await refused(
        412, "AppendPositionConditionNotMet", blob.append_block(b"x", appendpos_condition=3)
    )
    await refused(412, "MaxBlobSizeConditionNotMet", blob.append_block(b"x", maxsize_condition=6))
    source = container.get_blob_client("source")
    third = await blob.append_block_from_url(it.readable(source), source_offset=0, source_length=4)
    assert third["blob_append_offset"] == "6"
    assert await text(blob) == b"onetwo0123"
    await refused(
        404,
        "CannotVerifyCopySource",
        blob.append_block_from_url(it.readable(container.get_blob_client("none"))),
    )
    seen = await blob.get_blob_properties()
    assert (seen.blob_type, seen.append_blob_committed_block_count) == (BlobType.APPENDBLOB, 3)
    assert seen.content_settings.content_md5 is None and not seen.is_append_blob_sealed
    await refused(409, "BlobAlreadyExists", blob.create_append_blob(match_condition=MISSING))
    await refused(
        412, "AppendPositionConditionNotMet", blob.seal_append_blob(appendpos_condition=1)
    )
    sealed = await blob.seal_append_blob()
    assert sealed["blob_sealed"] is True, sealed
    assert (await blob.get_blob_properties()).is_append_blob_sealed is True
    await refused(409, "BlobIsSealed", blob.append_block(b"x"))
    await refused(404, "BlobNotFound", container.get_blob_client("none").append_block(b"x"))
    await refused(409, "InvalidBlobType", source.append_block(b"x"))
    await refused(409, "InvalidBlobType", blob.stage_block("a", b"x"))
    grown = container.get_blob_client("grown")
    await grown.upload_blob(b"a" * 9 * MIB, blob_type=BlobType.APPENDBLOB)
    await grown.upload_blob(b"b", blob_type=BlobType.APPENDBLOB)
    assert (await grown.get_blob_properties()).size == 9 * MIB + 1
    await grown.upload_blob(b"anew", blob_type=BlobType.APPENDBLOB, overwrite=True)
    assert await text(grown) == b"anew"


async def conditions(it, container):
    blob = container.get_blob_client("conditions")
    made = await blob.upload_blob(b"one")
    etag, date = made["etag"], made["last_modified"]
    wrong = {"etag": '"0x8D0000000000001"', "match_condition": SAME}
    same = {"etag": etag, "match_condition": OTHER}
    late, early = {"if_modified_since": date + HOUR}, {"if_unmodified_since": date - HOUR}
    for case in (wrong, same, late, early):
        read = case is same or case is late
        status = 304 if read else 412
        await refused(status, "ConditionNotMet", blob.get_blob_properties(**case))
        await refused(status, "ConditionNotMet", blob.download_blob(**case))
        for call in (
            blob.upload_blob(b"two", overwrite=True, **case),
            blob.set_blob_metadata({"a": "1"}, **case),
            blob.set_http_headers(ContentSettings(content_type="x/y"), **case),
            blob.create_snapshot(**case),
            blob.acquire_lease(**case),
            blob.commit_block_list([], **case),
            blob.create_append_blob(**case),
            blob.create_page_blob(512, **case),
            blob.delete_blob(**case),
        ):
            error = await refused(412, "ConditionNotMet", call)
            assert "[latchfs: changed" in error.message, error.message
            assert "Put Blob" in error.message and "azsdk-python-storage-blob" in error.message
    await refused(412, "ConditionNotMet", blob.download_blob(if_tags_match_condition="\"a\" = 'b'"))
    await refused(
        412, "ConditionNotMet", blob.set_blob_metadata({}, if_tags_match_condition="\"a\" = 'b'")
    )
    await blob.upload_blob(b"two", overwrite=True, etag=etag, match_condition=SAME)
    await blob.upload_blob(b"three", overwrite=True, match_condition=PRESENT)
    assert await text(blob) == b"three"
    await refused(
        412,
        "ConditionNotMet",
        container.get_blob_client("none").upload_blob(
            b"x", overwrite=True, match_condition=PRESENT
        ),
    )


async def queries(it, container):
    """Query Blob Contents is not done, and says so without being tried again."""
    blob = container.get_blob_client("conditions")
    await refused(501, "NotImplemented", blob.query_blob("SELECT * from BlobStorage"))
