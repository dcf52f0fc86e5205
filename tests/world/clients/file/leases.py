"""Leases of files, shares and snapshots."""

import uuid

from checks import refused

FIRST, SECOND, THIRD = (str(uuid.UUID(int=number)) for number in (1, 2, 3))


async def play(it):
    share = await it.service.create_share("leases")
    await of_files(it, share)
    await ends_of_a_rename(share)
    await of_shares(it, share)
    await of_snapshots(it)


async def of_files(it, share):
    file = share.get_file_client("leased")
    await file.upload_file(b"leased")
    before = await file.get_file_properties()
    lease = await file.acquire_lease(FIRST)
    assert lease.id == FIRST and lease.etag == before.etag
    got = await file.get_file_properties()
    assert (got.lease.state, got.lease.status, got.lease.duration) == (
        "leased",
        "locked",
        "infinite",
    )
    other = it.face.ShareLeaseClient(file, SECOND)
    await refused(409, "LeaseAlreadyPresent", other.acquire())
    await refused(409, "LeaseAlreadyPresent", file.acquire_lease(THIRD))
    await it.face.ShareLeaseClient(file, FIRST).acquire()

    write = (b"x", 0, 1)
    for call in (
        file.upload_range(*write),
        file.clear_range(0, 512),
        file.set_file_metadata({"a": "1"}),
        file.resize_file(1),
        file.create_file(1),
        file.delete_file(),
    ):
        await refused(412, "LeaseIdMissing", call)
    await refused(412, "LeaseIdMismatchWithFileOperation", file.upload_range(*write, lease=SECOND))
    await refused(412, "LeaseIdMismatchWithFileOperation", file.get_file_properties(lease=SECOND))
    await refused(412, "LeaseIdMismatchWithFileOperation", file.download_file(lease=SECOND))
    # Reading needs no lease.
    assert await (await file.download_file()).readall() == b"leased"
    await file.upload_range(*write, lease=lease)
    await file.set_file_metadata({"a": "1"}, lease=FIRST)
    assert await (await file.download_file(lease=lease)).readall() == b"xeased"

    await refused(409, "LeaseIdMismatchWithLeaseOperation", other.change(THIRD))
    await lease.change(THIRD)
    assert lease.id == THIRD
    await refused(409, "LeaseIdMismatchWithLeaseOperation", other.release())
    await lease.release()
    await refused(412, "LeaseNotPresentWithFileOperation", file.upload_range(*write, lease=THIRD))
    await refused(409, "LeaseNotPresentWithLeaseOperation", other.break_lease())
    held = await file.acquire_lease()
    assert uuid.UUID(held.id)
    assert await other.break_lease() == 0
    assert (await file.get_file_properties()).lease.state == "broken"
    await file.upload_range(*write)
    again = await file.acquire_lease()
    await file.delete_file(lease=again)
    await refused(404, "ResourceNotFound", file.acquire_lease())


async def ends_of_a_rename(share):
    ends = {}
    for name in ("from", "to"):
        file = share.get_file_client(name)
        await file.upload_file(name)
        ends[name] = (file, await file.acquire_lease())
    (file, source), (onto, target) = ends["from"], ends["to"]
    await refused(412, "LeaseIdMissing", file.rename_file("to", overwrite=True))
    await refused(
        412, "LeaseIdMissing", file.rename_file("to", overwrite=True, source_lease=source)
    )
    await file.rename_file("to", overwrite=True, source_lease=source, destination_lease=target)
    assert await (await onto.download_file()).readall() == b"from"


async def of_shares(it, share):
    lease = await share.acquire_lease(lease_duration=60, lease_id=FIRST)
    got = (await share.get_share_properties()).lease
    assert (got.state, got.status, got.duration) == ("leased", "locked", "fixed")
    (listed_,) = [item async for item in it.service.list_shares("leases")]
    assert listed_.lease.state == "leased"
    await refused(409, "LeaseAlreadyPresent", share.acquire_lease(lease_id=SECOND))
    await refused(400, "InvalidHeaderValue", share.acquire_lease(lease_duration=5))
    await refused(412, "LeaseIdMissing", share.delete_share())
    await refused(412, "LeaseIdMismatchWithContainerOperation", share.delete_share(lease=SECOND))
    await refused(
        412, "LeaseIdMismatchWithContainerOperation", share.get_share_properties(lease=SECOND)
    )
    await refused(412, "LeaseIdMismatchWithContainerOperation", share.get_share_stats(lease=SECOND))
    await refused(
        412, "LeaseIdMismatchWithContainerOperation", share.set_share_quota(1, lease=SECOND)
    )
    await share.set_share_metadata({"a": "1"}, lease=lease)

    await lease.renew()
    other = it.face.ShareLeaseClient(share, SECOND)
    await refused(409, "LeaseIdMismatchWithLeaseOperation", other.renew())
    await refused(409, "LeaseIdMismatchWithLeaseOperation", other.release())
    await lease.change(THIRD)
    assert lease.id == THIRD
    assert 0 < await other.break_lease(lease_break_period=30) <= 30
    assert (await share.get_share_properties()).lease.state == "breaking"
    await refused(409, "LeaseAlreadyPresent", other.acquire())
    own = it.face.ShareLeaseClient(share, THIRD)
    await refused(409, "LeaseIsBreakingAndCannotBeAcquired", own.acquire())
    await refused(409, "LeaseIsBreakingAndCannotBeChanged", lease.change(FIRST))
    assert await other.break_lease(lease_break_period=0) == 0
    assert (await share.get_share_properties()).lease.state == "broken"
    await refused(409, "LeaseIsBrokenAndCannotBeRenewed", lease.renew())
    await other.acquire(lease_duration=15)
    await other.release()
    await refused(
        412, "LeaseNotPresentWithContainerOperation", share.get_share_properties(lease=SECOND)
    )
    await refused(409, "LeaseNotPresentWithLeaseOperation", other.break_lease())
    held = await share.acquire_lease()
    await share.delete_share(lease=held)
    await refused(404, "ShareNotFound", share.acquire_lease())


async def of_snapshots(it):
    share = await it.service.create_share("lease-snapshots")
    taken = await share.create_snapshot()
    past = it.service.get_share_client("lease-snapshots", snapshot=taken)
    lease = await past.acquire_lease()
    assert (await past.get_share_properties()).lease.state == "leased"
    assert (await share.get_share_properties()).lease.state == "available"
    await refused(412, "LeaseIdMissing", past.delete_share())
    await refused(409, "DeleteShareWhenSnapshotLeased", share.delete_share(delete_snapshots=True))
    await lease.release()
    await past.acquire_lease()
    await share.delete_share(delete_snapshots="include-leased")
