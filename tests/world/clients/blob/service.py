"""The service: its properties, its containers page by page, soft delete of containers, stats."""

from asserting import HOUR, now, recent, refused, text
from azure.storage.blob import (
    BlobAnalyticsLogging,
    CorsRule,
    Metrics,
    RetentionPolicy,
    StaticWebsite,
)
from faces import listed


async def play(it):
    await properties(it)
    await pages(it)
    await deleted(it)
    await stats(it)
    # A bearer alone may ask for such a key.
    key = it.service.get_user_delegation_key(now(), now() + HOUR)
    await refused(403, "AuthenticationFailed", key)


async def properties(it):
    service = it.service
    first = await service.get_service_properties()
    assert not first["analytics_logging"].read and not first["hour_metrics"].enabled
    assert first["cors"] == [] and not first["delete_retention_policy"].enabled
    assert not first["static_website"].enabled and first["target_version"] is None, first
    kept = RetentionPolicy(enabled=True, days=5)
    rule = CorsRule(
        ["http://a.example"],
        ["GET", "PUT"],
        allowed_headers=["x-ms-*"],
        exposed_headers=["x-ms-meta-*"],
        max_age_in_seconds=60,
    )
    await service.set_service_properties(
        analytics_logging=BlobAnalyticsLogging(read=True, delete=True, retention_policy=kept),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=kept),
        minute_metrics=Metrics(enabled=True, include_apis=False, retention_policy=kept),
        cors=[rule],
        target_version="2021-12-02",
        delete_retention_policy=kept,
        static_website=StaticWebsite(
            enabled=True, index_document="index.html", error_document404_path="404.html"
        ),
    )
    second = await service.get_service_properties()
    log, hour = second["analytics_logging"], second["hour_metrics"]
    assert (log.read, log.write, log.delete, log.retention_policy.days) == (True, False, True, 5)
    assert (hour.enabled, hour.include_apis, hour.retention_policy.days) == (True, True, 5)
    assert second["minute_metrics"].enabled and second["target_version"] == "2021-12-02"
    assert second["delete_retention_policy"].days == 5
    assert second["static_website"].index_document == "index.html"
    assert second["static_website"].error_document404_path == "404.html"
    (seen,) = second["cors"]
    assert vars(seen) == vars(rule)
    # A part that is not sent stays as it is; an empty list is a part.
    off = RetentionPolicy(enabled=False)
    await service.set_service_properties(
        cors=[], delete_retention_policy=off, static_website=StaticWebsite(enabled=False)
    )
    third = await service.get_service_properties()
    assert third["cors"] == [] and third["hour_metrics"].enabled
    assert not third["delete_retention_policy"].enabled and not third["static_website"].enabled
    await refused(400, "InvalidXmlDocument", service.set_service_properties(cors=[rule] * 6))
    late = RetentionPolicy(enabled=True, days=366)
    await refused(
        400, "InvalidXmlDocument", service.set_service_properties(delete_retention_policy=late)
    )
    await refused(403, "AuthenticationFailed", it.stranger.get_service_properties())
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


async def stats(it):
    host = f"{it.endpoint.removeprefix('http://')}-secondary"
    mirrored = it.by(it.key, secondary_hostname=host)
    said = await mirrored.get_service_stats()
    assert said["geo_replication"]["status"] == "live"
    recent(said["geo_replication"]["last_sync_time"])
    await mirrored.close()
    stranger = it.by("A" * 86 + "==", secondary_hostname=host)
    await refused(403, "AuthenticationFailed", stranger.get_service_stats())
    await stranger.close()
