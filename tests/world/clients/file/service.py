"""The service: its properties, its shares page by page, shares that come back."""
from azure.storage.fileshare import (
    CorsRule,
    Metrics,
    RetentionPolicy,
    ShareProtocolSettings,
    ShareSmbSettings,
    SmbMultichannel,
)

from checks import now, recent, refused
from faces import listed


async def play(it):
    await properties(it)
    await pages(it)
    await deleted_and_back(it)
    await delegation(it)


async def properties(it):
    service = it.service
    first = await service.get_service_properties()
    assert not first["hour_metrics"].enabled and not first["minute_metrics"].enabled
    assert first["cors"] == [] and not first["protocol"].smb.multichannel.enabled

    kept = Metrics(
        enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=5)
    )
    rule = CorsRule(
        ["http://a.example", "http://b.example"],
        ["GET", "PUT"],
        allowed_headers=["x-ms-*"],
        exposed_headers=["x-ms-meta-*", "etag"],
        max_age_in_seconds=60,
    )
    channels = ShareSmbSettings(multichannel=SmbMultichannel(enabled=True))
    await service.set_service_properties(
        hour_metrics=kept, cors=[rule], protocol=ShareProtocolSettings(smb=channels)
    )
    second = await service.get_service_properties()
    hour = second["hour_metrics"]
    assert (hour.enabled, hour.include_apis) == (True, True)
    assert (hour.retention_policy.enabled, hour.retention_policy.days) == (True, 5)
    assert not second["minute_metrics"].enabled
    assert second["protocol"].smb.multichannel.enabled
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
    for name in names:
        await service.create_share(name, metadata={"Label": name}, quota=7)
    await refused("ShareAlreadyExists", service.create_share("page-a"))
    await refused("InvalidResourceName", service.create_share("Page_A"))

    every = await listed(service.list_shares())
    assert [share.name for share in every] == [*names, "share"]
    some = service.list_shares(name_starts_with="page-", results_per_page=2).by_page()
    first = await some.page()
    assert [share.name for share in first] == names[:2]
    assert first[0].quota == 7 and first[0].metadata is None and first[0].etag
    assert (first[0].lease.state, first[0].protocols) == ("available", ["SMB"])
    recent(first[0].last_modified)
    # Another client goes on where this one is.
    rest = service.list_shares(name_starts_with="page-", results_per_page=2).by_page(some.token)
    sizes = [[share.name for share in await listed(page)] async for page in rest]
    assert sizes == [names[2:4], names[4:]]

    taken = await service.get_share_client("page-b").create_snapshot()
    full = service.list_shares("page-b", include_metadata=True, include_snapshots=True)
    snapshot, live = sorted(await listed(full), key=lambda share: share.snapshot is None)
    assert (snapshot.snapshot, live.snapshot) == (taken["snapshot"], None)
    assert list(live.metadata.values()) == list(snapshot.metadata.values()) == ["page-b"]
    assert list(live.metadata) == ["Label"]

    await refused("InvalidContinuationToken", service.list_shares().by_page("x").page())
    await refused("OutOfRangeQueryParameterValue", listed(service.list_shares(results_per_page=0)))
    await refused("AuthenticationFailed", listed(it.stranger.list_shares()))
    await refused("ShareHasSnapshots", service.delete_share("page-b"))
    await service.delete_share(live, delete_snapshots=True)
    await service.delete_share("page-b")  # Accepted again while the first is at work.
    await refused("ShareNotFound", service.delete_share("never-was"))


async def deleted_and_back(it):
    service = it.service
    share = await service.create_share("comes-back", metadata={"a": "1"})
    await share.get_file_client("kept.txt").upload_file(b"kept")
    await service.delete_share("comes-back")
    assert not await listed(service.list_shares("comes-back"))
    (gone,) = await listed(service.list_shares("comes-back", include_deleted=True))
    assert gone.deleted and gone.version and gone.remaining_retention_days > 0
    recent(gone.deleted_time)
    await refused("ShareNotFound", share.get_share_properties())
    await refused("ShareNotFound", service.undelete_share("comes-back", "01D0000000000000"))
    back = await service.undelete_share(gone.name, gone.version)
    assert await (await back.get_file_client("kept.txt").download_file()).readall() == b"kept"
    assert (await back.get_share_properties()).metadata == {"a": "1"}
    await refused("ShareAlreadyExists", service.undelete_share(gone.name, gone.version))


async def delegation(it):
    await refused("AuthenticationFailed", it.service.get_user_delegation_key(expiry=now(), start=now()))
