"""The service: its properties, its queues page by page, and what its secondary says."""
from azure.storage.queue import CorsRule, Metrics, QueueAnalyticsLogging, RetentionPolicy

from checks import existed, now, recent, refused
from faces import listed


async def play(it):
    await properties(it)
    await pages(it)
    await stats(it)
    # A bearer alone may ask for such a key.
    key = it.service.get_user_delegation_key(expiry=now(), start=now())
    await refused("AuthenticationFailed", key)


async def properties(it):
    service = it.service
    first = await service.get_service_properties()
    log = first["analytics_logging"]
    assert not (log.read or log.write or log.delete or log.retention_policy.enabled)
    assert not first["hour_metrics"].enabled and not first["minute_metrics"].enabled
    assert first["cors"] == []

    kept = RetentionPolicy(enabled=True, days=5)
    rule = CorsRule(
        ["http://a.example", "http://b.example"],
        ["GET", "PUT"],
        allowed_headers=["x-ms-*"],
        exposed_headers=["x-ms-meta-*", "x-ms-popreceipt"],
        max_age_in_seconds=60,
    )
    await service.set_service_properties(
        analytics_logging=QueueAnalyticsLogging(read=True, write=True, retention_policy=kept),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=kept),
        cors=[rule],
    )
    second = await service.get_service_properties()
    log, hour = second["analytics_logging"], second["hour_metrics"]
    assert (log.read, log.write, log.delete, log.retention_policy.days) == (True, True, False, 5)
    assert (hour.enabled, hour.include_apis, hour.retention_policy.days) == (True, True, 5)
    assert not second["minute_metrics"].enabled
    (seen,) = second["cors"]
    assert vars(seen) == vars(rule)

    # A part that is not sent stays as it is; an empty list is a part.
    await service.set_service_properties(cors=[])
    third = await service.get_service_properties()
    assert third["cors"] == [] and third["hour_metrics"].enabled
    await refused("InvalidXmlDocument", service.set_service_properties(cors=[rule] * 6))
    await refused("AuthenticationFailed", it.stranger.get_service_properties())


async def pages(it):
    service = it.service
    names = [f"page-{letter}" for letter in "abcde"]
    for name in reversed(names):
        queue = await service.create_queue(name, metadata={"Label": name})
        assert queue.queue_name == name
    await refused("QueueAlreadyExists", service.create_queue("page-a", metadata={"Label": "b"}))
    await existed(service.create_queue("page-a", metadata={"label": "page-a"}))
    await refused("InvalidResourceName", service.create_queue("Page_A"))
    await refused("OutOfRangeInput", service.create_queue("ab"))

    some = service.list_queues(name_starts_with="page-", results_per_page=2).by_page()
    first = await some.page()
    assert [queue.name for queue in first] == names[:2]
    assert first[0].metadata is None
    # Another client goes on where this one is.
    rest = service.list_queues(name_starts_with="page-", results_per_page=2).by_page(some.token)
    sizes = [[queue.name for queue in await listed(page)] async for page in rest]
    assert sizes == [names[2:4], names[4:]]
    (full,) = await listed(service.list_queues("page-b", include_metadata=True))
    assert full.metadata == {"Label": "page-b"}

    await refused("OutOfRangeQueryParameterValue", listed(service.list_queues(results_per_page=0)))
    await refused("AuthenticationFailed", listed(it.stranger.list_queues()))
    for name in names[1:]:
        await service.delete_queue(name)
    await service.delete_queue((await listed(service.list_queues("page-")))[0])
    assert await listed(service.list_queues("page-")) == []
    await refused("QueueNotFound", service.delete_queue("page-a"))


async def stats(it):
    async with it.mirrored(it.key) as service:
        said = await service.get_service_stats()
        assert said["geo_replication"]["status"] == "live"
        recent(said["geo_replication"]["last_sync_time"])
    async with it.mirrored("A" * 86 + "==") as stranger:
        await refused("AuthenticationFailed", stranger.get_service_stats())
