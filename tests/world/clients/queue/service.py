"""The service: its properties, its queues page by page, and what its secondary says."""

from azure.storage.queue import QueueAnalyticsLogging, RetentionPolicy
from checks import now, refused
from faces import listed
from queues import existed
from shared import properties, stats


async def play(it):
    await logging(it)
    await pages(it)
    await stats(it)
    # A bearer alone may ask for such a key.
    key = it.service.get_user_delegation_key(expiry=now(), start=now())
    await refused(403, "AuthenticationFailed", key)


async def logging(it):
    kept = RetentionPolicy(enabled=True, days=5)
    log = QueueAnalyticsLogging(read=True, write=True, retention_policy=kept)
    first, second = await properties(it, analytics_logging=log)
    log = first["analytics_logging"]
    assert not (log.read or log.write or log.delete or log.retention_policy.enabled)
    log = second["analytics_logging"]
    assert (log.read, log.write, log.delete, log.retention_policy.days) == (True, True, False, 5)


async def pages(it):
    service = it.service
    names = [f"page-{letter}" for letter in "abcde"]
    for name in reversed(names):
        queue = await service.create_queue(name, metadata={"Label": name})
        assert queue.queue_name == name
    await refused(
        409, "QueueAlreadyExists", service.create_queue("page-a", metadata={"Label": "b"})
    )
    await existed(service.create_queue("page-a", metadata={"label": "page-a"}))
    await refused(400, "InvalidResourceName", service.create_queue("Page_A"))
    await refused(400, "OutOfRangeInput", service.create_queue("ab"))

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

    await refused(
        400, "OutOfRangeQueryParameterValue", listed(service.list_queues(results_per_page=0))
    )
    await refused(403, "AuthenticationFailed", listed(it.stranger.list_queues()))
    for name in names[1:]:
        await service.delete_queue(name)
    await service.delete_queue((await listed(service.list_queues("page-")))[0])
    assert await listed(service.list_queues("page-")) == []
    await refused(404, "QueueNotFound", service.delete_queue("page-a"))
