"""Tags, and finding blobs by them."""

from checks import refused
from faces import listed


async def play(it):
    first = await it.service.create_container("tags-one")
    second = await it.service.create_container("tags-two")
    blob = first.get_blob_client("a")
    made = await blob.upload_blob(b"x", tags={"Kind": "one", "level": "1"})
    assert await blob.get_blob_tags() == {"Kind": "one", "level": "1"}
    await blob.set_blob_tags({"Kind": "two + two", "level": "2"})
    assert await blob.get_blob_tags() == {"Kind": "two + two", "level": "2"}
    seen = await blob.get_blob_properties()
    assert (seen.tag_count, seen.etag) == (2, made["etag"])
    await refused(400, "TagsTooLarge", blob.set_blob_tags({str(n): "x" for n in range(11)}))
    await refused(
        412,
        "ConditionNotMet",
        blob.set_blob_tags({"a": "b"}, if_tags_match_condition="\"Kind\" = 'one'"),
    )
    await refused(
        412, "ConditionNotMet", blob.get_blob_tags(if_tags_match_condition="\"Kind\" = 'one'")
    )
    none = first.get_blob_client("none")
    await refused(404, "BlobNotFound", none.get_blob_tags())
    await refused(404, "BlobNotFound", none.set_blob_tags({"a": "b"}))
    await second.upload_blob("b/c", b"x", tags={"level": "3"})
    find = it.service.find_blobs_by_tags
    found = [(one.container_name, one.name) for one in await listed(find("\"level\" >= '2'"))]
    assert found == [("tags-one", "a"), ("tags-two", "b/c")], found
    (one,) = await listed(find("@container = 'tags-two' AND \"level\" > '2'"))
    assert (one.name, one.tags) == ("b/c", {"level": "3"}), vars(one)
    pages = find("\"level\" >= '2'", results_per_page=1).by_page()
    assert [len(await listed(page)) async for page in pages] == [1, 1]
    await refused(400, "InvalidQueryParameterValue", listed(find("level is high")))
    (one,) = await listed(first.find_blobs_by_tags("\"level\" = '2'"))
    assert one.name == "a"
    await refused(400, "InvalidQueryParameterValue", listed(first.find_blobs_by_tags("nonsense")))
    await blob.set_blob_tags()
    assert await blob.get_blob_tags() == {}
    await first.delete_container()
    await second.delete_container()
