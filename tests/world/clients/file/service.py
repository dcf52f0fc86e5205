"""The service: its properties, its shares page by page, shares that come back."""

from azure.storage.fileshare import ShareProtocolSettings, ShareSmbSettings, SmbMultichannel
from checks import now, recent, refused
from faces import listed
from shared import properties


async def play(it):
    await smb(it)
    await pages(it)
    await deleted_and_back(it)
    # A bearer alone may ask for such a key.
    key = it.service.get_user_delegation_key(expiry=now(), start=now())
    await refused(403, "AuthenticationFailed", key)


async def smb(it):
    channels = ShareSmbSettings(multichannel=SmbMultichannel(enabled=True))
    first, second = await properties(it, protocol=ShareProtocolSettings(smb=channels))
    assert not first["protocol"].smb.multichannel.enabled
    assert second["protocol"].smb.multichannel.enabled


async def pages(it):
    service = it.service
    names = [f"page-{letter}" for letter in "abcde"]
    for name in names:
        await service.create_share(name, metadata={"Label": name}, quota=7)
    await refused(409, "ShareAlreadyExists", service.create_share("page-a"))
    await refused(400, "InvalidResourceName", service.create_share("Page_A"))

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

    await refused(400, "InvalidContinuationToken", service.list_shares().by_page("x").page())
    await refused(
        400, "OutOfRangeQueryParameterValue", listed(service.list_shares(results_per_page=0))
    )
    await refused(403, "AuthenticationFailed", listed(it.stranger.list_shares()))
    await refused(409, "ShareHasSnapshots", service.delete_share("page-b"))
    await service.delete_share(live, delete_snapshots=True)
    await service.delete_share("page-b")  # Accepted again while the first is at work.
    await refused(404, "ShareNotFound", service.delete_share("never-was"))


async def deleted_and_back(it):
    service = it.service
    share = await service.create_share("comes-back", metadata={"a": "1"})
    await share.get_file_client("kept.txt").upload_file(b"kept")
    await service.delete_share("comes-back")
    assert not await listed(service.list_shares("comes-back"))
    (gone,) = await listed(service.list_shares("comes-back", include_deleted=True))
    assert gone.deleted and gone.version and gone.remaining_retention_days > 0
    recent(gone.deleted_time)
    await refused(404, "ShareNotFound", share.get_share_properties())
    await refused(404, "ShareNotFound", service.undelete_share("comes-back", "01D0000000000000"))
    back = await service.undelete_share(gone.name, gone.version)
    assert await (await back.get_file_client("kept.txt").download_file()).readall() == b"kept"
    assert (await back.get_share_properties()).metadata == {"a": "1"}
    await refused(409, "ShareAlreadyExists", service.undelete_share(gone.name, gone.version))
