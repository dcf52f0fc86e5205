"""The service: its properties, its containers page by page, soft delete of containers, stats."""

from asserting import text
from azure.storage.blob import (
    BlobAnalyticsLogging,
    Metrics,
    RetentionPolicy,
    StaticWebsite,
)
from checks import HOUR, now, recent, refused
from faces import listed
from shared import properties, stats


async def play(it):
    await parts(it)
    await pages(it)
    await deleted(it)
    await stats(it)
    # A bearer alone may ask for such a key.
    key = it.service.get_user_delegation_key(now(), now() + HOUR)
    await refused(403, "AuthenticationFailed", key)


async def parts(it):
    service, kept = it.service, RetentionPolicy(enabled=True, days=5)
    first, second = await properties(
        it,
        analytics_logging=BlobAnalyticsLogging(read=True, delete=True, retention_policy=kept),
        minute_metrics=Metrics(enabled=True, include_apis=False, retention_policy=kept),
        target_version="2021-12-02",
        delete_retention_policy=kept,
        static_website=StaticWebsite(
            enabled=True, index_document="index.html", error_document404_path="404.html"
        ),
    )
    assert not first["analytics_logging"].read and not first["delete_retention_policy"].enabled
    assert not first["static_website"].enabled and first["target_version"] is None, first
    log = second["analytics_logging"]
    assert (log.read, log.write, log.delete, log.retention_policy.days) == (True, False, True, 5)
    assert second["target_version"] == "2021-12-02"
    assert second["delete_retention_policy"].days == 5
    assert second["static_website"].index_document == "index.html"
    assert second["static_website"].error_document404_path == "404.html"
    off = RetentionPolicy(enabled=False)
    await service.set_service_properties(
        delete_retention_policy=off, static_website=StaticWebsite(enabled=False)
    )
    third = await service.get_service_properties()
    assert not third["delete_retention_policy"].enabled and not third["static_website"].enabled
    late = RetentionPolicy(enabled=True, days=366)
    await refused(
        400, "InvalidXmlDocument", service.set_service_properties(delete_retention_policy=late)
    )
    said = await service.get_account_information()
    assert said["sku_name"] and said["account_kind"] and said["is_hns_enabled"] is False, said
    await refused(403, "AuthenticationFailed", it.stranger.get_account_information())


async def pages(it):
    service = it.service
    names = [f"page-{letter}" for letter in "abcde"]
    for name in reversed(names):
        container = await service.create_container(name, metadata={"Label": name})
        assert container.container_name == name
    await refused(409, "ContainerAlreadyExists", service.create_container("page-a"))
    await refused(400, "InvalidResourceName", service.create_container("Page_A"))
    await refused(400, "OutOfRangeInput", service.create_container("ab"))
    some = service.list_containers("page-", results_per_page=2).by_page()
    first = await some.page()
    assert [one.name for one in first] == names[:2]
    assert first[0].metadata is None and first[0].etag.startswith('"0x'), first[0].etag
    assert (first[0].lease.status, first[0].lease.state) == ("unlocked", "available")
    recent(first[0].last_modified)
    rest = service.list_containers("page-", results_per_page=2).by_page(some.token)
    sizes = [[one.name for one in await listed(page)] async for page in rest]
    assert sizes == [names[2:4], names[4:]], sizes
    (full,) = await listed(service.list_containers("page-b", include_metadata=True))
    assert full.metadata == {"Label": "page-b"}
    await refused(
        400, "OutOfRangeQueryParameterValue", listed(service.list_containers(results_per_page=0))
    )
    await refused(403, "AuthenticationFailed", listed(it.stranger.list_containers()))
    for name in names[1:]:
        await service.delete_container(name)
    (last,) = await listed(service.list_containers("page-"))
    await refused(
        412,
        "LeaseNotPresentWithContainerOperation",
        service.delete_container(last, lease="00000000-0000-4000-8000-000000000001"),
    )
    await refused(
        412, "ConditionNotMet", service.delete_container(last, if_unmodified_since=now() - HOUR)
    )
    await service.delete_container(last)
    await refused(404, "ContainerNotFound", service.delete_container("page-a"))


async def deleted(it):
    """Containers that are deleted can be had back while they are kept."""
    service = it.service
    container = await service.create_container("returning", metadata={"a": "1"})
    await container.upload_blob("b", b"kept")
    await service.set_service_properties(
        delete_retention_policy=RetentionPolicy(enabled=True, days=1)
    )
    await container.delete_container()
    assert not await container.exists()
    (gone,) = await listed(service.list_containers("returning", include_deleted=True))
    assert gone.deleted and gone.version, vars(gone)
    back = await service.undelete_container("returning", gone.version)
    assert await text(back.get_blob_client("b")) == b"kept"
    await service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=False))
    await back.delete_container()
    await refused(
        404, "ContainerNotFound", it.service.undelete_container("never", "01D60F8BB59A4652")
    )
