"""Page blobs: ranges, sequence numbers, resizing, differences between snapshots."""

from asserting import text
from azure.storage.blob import BlobType, SequenceNumberAction
from checks import refused
from faces import listed

PAGE = 512


async def play(it):
    container = await it.service.create_container("pages")
    blob = container.get_blob_client("disk")
    await refused(404, "BlobNotFound", blob.upload_page(b"x" * PAGE, 0, PAGE))
    made = await blob.create_page_blob(
        8 * PAGE, sequence_number=3, metadata={"a": "1"}, tags={"t": "1"}
    )
    assert made["etag"]
    await refused(
        400, "InvalidHeaderValue", container.get_blob_client("odd").create_page_blob(1000)
    )
    done = await blob.upload_page(b"a" * 2 * PAGE, 0, 2 * PAGE, validate_content=True)
    assert done["blob_sequence_number"] == 3, done
    await blob.upload_page(b"b" * PAGE, 4 * PAGE, PAGE, if_sequence_number_lte=3)
    await refused(
        412,
        "SequenceNumberConditionNotMet",
        blob.upload_page(b"c" * PAGE, 0, PAGE, if_sequence_number_lt=3),
    )
    await refused(
        412, "SequenceNumberConditionNotMet", blob.clear_page(0, PAGE, if_sequence_number_eq=4)
    )
    await refused(416, "InvalidPageRange", blob.upload_page(b"c" * PAGE, 8 * PAGE, PAGE))
    ranges = await listed(blob.list_page_ranges())
    assert spans(ranges) == [(0, 1023, False), (2048, 2559, False)], spans(ranges)
    written, cleared = await blob.get_page_ranges()
    assert written == [{"start": 0, "end": 1023}, {"start": 2048, "end": 2559}] and cleared == []
    taken = await blob.create_snapshot()
    await blob.clear_page(0, PAGE)
    await blob.upload_page(b"d" * PAGE, 7 * PAGE, PAGE)
    written, cleared = await blob.get_page_ranges(previous_snapshot_diff=taken)
    assert written == [{"start": 3584, "end": 4095}] and cleared == [{"start": 0, "end": 511}]
    difference = await listed(blob.list_page_ranges(previous_snapshot=taken["snapshot"]))
    assert spans(difference) == [(0, 511, True), (3584, 4095, False)], spans(difference)
    paged = blob.list_page_ranges(results_per_page=1).by_page()
    assert [len(await listed(page)) async for page in paged] == [1, 1, 1]
    url = f"{blob.url}?snapshot={taken['snapshot']}"
    written, cleared = await blob.get_page_range_diff_for_managed_disk(url)
    assert written == [{"start": 3584, "end": 4095}] and cleared == [{"start": 0, "end": 511}]
    await refused(
        409,
        "PreviousSnapshotNotFound",
        blob.get_page_ranges(previous_snapshot_diff="2020-01-01T00:00:00.0000000Z"),
    )
    await refused(
        409,
        "PreviousSnapshotNotFound",
        blob.get_page_range_diff_for_managed_disk(
            f"{blob.url}?snapshot=2020-01-01T00:00:00.0000000Z"
        ),
    )
    await refused(
        409,
        "PreviousSnapshotNotFound",
        listed(blob.list_page_ranges(previous_snapshot="2020-01-01T00:00:00.0000000Z")),
    )
    await sequence(blob)
    await sized(blob)
    await by_url(it, container, blob)
    await tiers(container, blob)
    flat = container.get_blob_client("flat")
    await flat.upload_blob(b"x" * 3 * PAGE, blob_type=BlobType.PAGEBLOB)
    assert await text(flat) == b"x" * 3 * PAGE
    await refused(409, "InvalidBlobType", flat.append_block(b"x"))
    block = container.get_blob_client("block")
    await block.upload_blob(b"x")
    await refused(409, "InvalidBlobType", block.get_page_ranges())
    await refused(409, "InvalidBlobType", block.resize_blob(512))
    await refused(409, "InvalidBlobType", block.set_sequence_number("increment"))
    await container.delete_container()


def spans(ranges):
    return [(one.start, one.end, one.cleared) for one in ranges]


async def sequence(blob):
    done = await blob.set_sequence_number(SequenceNumberAction.MAX, "2")
    assert done["blob_sequence_number"] == 3
    done = await blob.set_sequence_number(SequenceNumberAction.Update, "7")
    assert done["blob_sequence_number"] == 7
    done = await blob.set_sequence_number(SequenceNumberAction.Increment)
    assert done["blob_sequence_number"] == 8
    assert (await blob.get_blob_properties()).page_blob_sequence_number == 8


async def sized(blob):
    await refused(400, "InvalidHeaderValue", blob.resize_blob(1000))
    await blob.resize_blob(PAGE)
    await blob.resize_blob(2 * PAGE)
    assert await text(blob) == bytes(2 * PAGE)
    seen = await blob.get_blob_properties()
    assert (seen.size, seen.blob_type) == (2 * PAGE, BlobType.PAGEBLOB)
    assert seen.metadata == {"a": "1"}, seen.metadata


async def by_url(it, container, blob):
    source = container.get_blob_client("source")
    await source.upload_blob(b"s" * 3 * PAGE)
    done = await blob.upload_pages_from_url(it.readable(source), PAGE, PAGE, PAGE)
    assert done["etag"]
    assert await text(blob) == bytes(PAGE) + b"s" * PAGE
    none = it.readable(container.get_blob_client("none"))
    await refused(404, "CannotVerifyCopySource", blob.upload_pages_from_url(none, 0, PAGE, 0))
    await refused(
        412,
        "CannotVerifyCopySource",
        blob.upload_pages_from_url(
            it.readable(source), 0, PAGE, 0, source_etag='"0x1"', source_match_condition=same()
        ),
    )


def same():
    from azure.core import MatchConditions

    return MatchConditions.IfNotModified


async def tiers(container, blob):
    """A standard account has no tiers for pages."""
    await refused(400, "AccessTierNotSupportedForBlobType", blob.set_premium_page_blob_tier("P4"))
