"""Leases on blobs and containers, and who is refused because of them."""

from asserting import A, B, text
from azure.storage.blob import BlobBlock, ContentSettings
from checks import refused

C = "00000000-0000-4000-8000-00000000000c"


async def play(it):
    container = await it.service.create_container("leases")
    await of_blobs(it, container)
    await writes(it, container)
    await of_containers(it, container)


async def of_blobs(it, container):
    blob = container.get_blob_client("b")
    missing = container.get_blob_client("none")
    await refused(404, "BlobNotFound", missing.acquire_lease())
    made = await blob.upload_blob(b"one")
    await refused(400, "InvalidHeaderValue", blob.acquire_lease(14))
    await refused(400, "InvalidHeaderValue", blob.acquire_lease(61))
    await refused(400, "InvalidHeaderValue", blob.acquire_lease(lease_id="nope"))
    lease = await blob.acquire_lease(60, lease_id=A)
    assert (lease.id, lease.etag) == (A, made["etag"])
    error = await refused(409, "LeaseAlreadyPresent", blob.acquire_lease(lease_id=B))
    assert "[latchfs: " in error.message, error.message
    seen = await blob.get_blob_properties()
    assert (seen.lease.status, seen.lease.state, seen.lease.duration) == (
        "locked",
        "leased",
        "fixed",
    )
    await lease.renew()
    other = it.face.BlobLeaseClient(blob, B)
    await refused(409, "LeaseIdMismatchWithLeaseOperation", other.renew())
    await refused(409, "LeaseIdMismatchWithLeaseOperation", other.release())
    await refused(409, "LeaseIdMismatchWithLeaseOperation", other.change(C))
    await lease.change(B)
    assert lease.id == B
    assert 0 < await lease.break_lease() <= 60
    await refused(409, "LeaseIsBrokenAndCannotBeRenewed", lease.renew())
    await refused(409, "LeaseIsBreakingAndCannotBeChanged", lease.change(A))
    await refused(409, "LeaseIsBreakingAndCannotBeAcquired", lease.acquire())
    assert await lease.break_lease(0) == 0
    assert (await blob.get_blob_properties()).lease.state == "broken"
    await refused(412, "LeaseLost", blob.upload_blob(b"x", overwrite=True, lease=lease))
    await lease.release()
    await refused(409, "LeaseNotPresentWithLeaseOperation", lease.break_lease())
    await lease.acquire(-1)
    assert (await blob.get_blob_properties()).lease.duration == "infinite"
    await lease.release()


async def writes(it, container):
    blob = container.get_blob_client("b")
    lease = await blob.acquire_lease(lease_id=A)

    def each(**more):
        yield "upload", lambda: blob.upload_blob(b"two", overwrite=True, **more)
        yield "metadata", lambda: blob.set_blob_metadata({"a": "1"}, **more)
        yield "headers", lambda: blob.set_http_headers(ContentSettings(content_type="x/y"), **more)
        yield "stage", lambda: blob.stage_block("a", b"x", **more)
        yield "commit", lambda: blob.commit_block_list([BlobBlock("a")], **more)
        yield "tags", lambda: blob.set_blob_tags({"a": "1"}, **more)
        yield "tier", lambda: blob.set_standard_blob_tier("Cool", **more)

    for _, call in each():
        error = await refused(412, "LeaseIdMissing", call())
        # Who has it, since when, and by which program.
        assert "leased" in error.message and "azsdk-python-storage-blob" in error.message, error
    for _, call in each(lease=B):
        await refused(412, "LeaseIdMismatchWithBlobOperation", call())
    for _, call in each(lease=lease):
        await call()
    # `upload_blob` without overwrite sends If-None-Match: *, which a valid lease lifts.
    await blob.upload_blob(b"three", lease=lease)
    await refused(412, "LeaseIdMissing", blob.upload_blob(b"four"))
    await refused(412, "LeaseIdMissing", blob.delete_blob())
    assert await text(blob) == b"three"
    assert await text(blob, lease=lease) == b"three"
    await refused(412, "LeaseIdMismatchWithBlobOperation", blob.download_blob(lease=B))
    await refused(412, "LeaseIdMismatchWithBlobOperation", blob.get_blob_properties(lease=B))
    await refused(412, "LeaseIdMismatchWithBlobOperation", blob.create_snapshot(lease=B))
    await blob.delete_blob(lease=lease)
    await blob.upload_blob(b"free")
    await refused(412, "LeaseNotPresentWithBlobOperation", blob.delete_blob(lease=lease))
    await blob.delete_blob()


async def of_containers(it, container):
    lease = await container.acquire_lease(lease_id=A)
    await refused(409, "LeaseAlreadyPresent", container.acquire_lease())
    await refused(400, "InvalidHeaderValue", container.acquire_lease(5))
    assert (await container.get_container_properties()).lease.state == "leased"
    await container.upload_blob("in", b"side")
    await container.set_container_metadata({"a": "1"})
    await refused(
        412,
        "LeaseIdMismatchWithContainerOperation",
        container.set_container_metadata({"a": "1"}, lease=B),
    )
    await refused(
        412, "LeaseIdMismatchWithContainerOperation", container.get_container_properties(lease=B)
    )
    error = await refused(412, "LeaseIdMissing", container.delete_container())
    assert "[latchfs: " in error.message, error.message
    await lease.renew()
    await lease.change(B)
    assert await lease.break_lease(0) == 0
    await refused(412, "LeaseLost", container.delete_container(lease=lease))
    await lease.release()
    await lease.acquire(60)
    await container.delete_container(lease=lease)
    await refused(404, "ContainerNotFound", container.acquire_lease())
    await refused(404, "ContainerNotFound", lease.acquire())
