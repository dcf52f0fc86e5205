"""Older states of blobs: snapshots, versions, soft delete, immutability, tiers, customer keys."""

import base64
import hashlib
import os

from asserting import text
from azure.storage.blob import (
    CustomerProvidedEncryptionKey,
    ImmutabilityPolicy,
    RehydratePriority,
    RetentionPolicy,
    StandardBlobTier,
)
from checks import HOUR, now, refused
from faces import listed


async def play(it):
    container = await it.service.create_container("states")
    await snapshots(it, container)
    await tiers(it, container)
    await keys(it, container)
    await kept(it, container)
    await held(it, container)
    await versions(it)
    await container.delete_container()


async def snapshots(it, container):
    blob = container.get_blob_client("s")
    await refused(404, "BlobNotFound", blob.create_snapshot())
    made = await blob.upload_blob(b"one", metadata={"n": "1"})
    first = await blob.create_snapshot()
    assert first["snapshot"] and first["etag"] == made["etag"]
    second = await blob.create_snapshot(metadata={"n": "2"})
    await blob.upload_blob(b"two", overwrite=True)
    old = container.get_blob_client("s", snapshot=first)
    assert await text(old) == b"one" and await old.exists()
    seen = await old.get_blob_properties()
    assert seen.metadata == {"n": "1"} and seen.snapshot == first["snapshot"]
    assert seen.lease.state is None and seen.etag == made["etag"]
    newer = container.get_blob_client("s", snapshot=second["snapshot"])
    assert (await newer.get_blob_properties()).metadata == {"n": "2"}
    listing = await listed(container.list_blobs("s", include="snapshots"))
    assert [one.snapshot for one in listing] == [first["snapshot"], second["snapshot"], None]
    await refused(409, "SnapshotsPresent", blob.delete_blob())
    await old.delete_blob()
    assert not await old.exists()
    await refused(404, "BlobNotFound", old.download_blob())
    await blob.delete_blob(delete_snapshots="only")
    assert len(await listed(container.list_blobs("s", include="snapshots"))) == 1
    await blob.create_snapshot()
    await blob.delete_blob(delete_snapshots="include")
    assert await listed(container.list_blobs("s", include="snapshots")) == []


async def tiers(it, container):
    blob = container.get_blob_client("t")
    await refused(404, "BlobNotFound", blob.set_standard_blob_tier("Hot"))
    await blob.upload_blob(b"x", standard_blob_tier=StandardBlobTier.COOL)
    assert (await blob.get_blob_properties()).blob_tier == "Cool"
    await blob.set_standard_blob_tier("Archive")
    seen = await blob.get_blob_properties()
    assert seen.blob_tier == "Archive" and seen.blob_tier_change_time
    await refused(409, "BlobArchived", blob.download_blob())
    await blob.set_standard_blob_tier("Hot", rehydrate_priority=RehydratePriority.high)
    assert (await blob.get_blob_properties()).blob_tier == "Hot"
    await refused(400, "InvalidHeaderValue", blob.set_standard_blob_tier("Warm"))
    await blob.delete_blob()


async def keys(it, container):
    """Customer keys need https in the SDK: what it sends then is tried over TLS."""
    secret = os.urandom(32)
    key = CustomerProvidedEncryptionKey(
        base64.b64encode(secret).decode(),
        base64.b64encode(hashlib.sha256(secret).digest()).decode(),
    )
    try:
        await container.get_blob_client("k").upload_blob(b"x", cpk=key)
        raise AssertionError("a key over http")
    except ValueError:
        pass


async def kept(it, container):
    """Soft delete."""
    blob = container.get_blob_client("d")
    await it.service.set_service_properties(
        delete_retention_policy=RetentionPolicy(enabled=True, days=2)
    )
    # There was nothing to do.
    await blob.undelete_blob()
    await refused(
        404, "ContainerNotFound", it.service.get_blob_client("nowhere", "d").undelete_blob()
    )
    await blob.upload_blob(b"one")
    await blob.upload_blob(b"two", overwrite=True)
    await blob.delete_blob()
    assert not await blob.exists()
    gone = await listed(container.list_blobs("d", include=["deleted"]))
    assert gone and all(one.deleted for one in gone), gone
    assert gone[-1].deleted_time and gone[-1].remaining_retention_days is not None
    await blob.undelete_blob()
    assert await text(blob) == b"two"
    await blob.undelete_blob()
    await blob.delete_blob(delete_snapshots="include")
    await it.service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=False))


async def held(it, container):
    blob = container.get_blob_client("h")
    await blob.upload_blob(b"x")
    done = await blob.set_legal_hold(True)
    assert done["legal_hold"] is True, done
    assert (await blob.get_blob_properties()).has_legal_hold is True
    await refused(409, "BlobImmutableDueToLegalHold", blob.delete_blob())
    await refused(409, "BlobImmutableDueToLegalHold", blob.upload_blob(b"y", overwrite=True))
    await blob.set_legal_hold(False)
    policy = ImmutabilityPolicy(expiry_time=now() + HOUR, policy_mode="Unlocked")
    done = await blob.set_immutability_policy(policy)
    assert done["immutability_policy_mode"].lower() == "unlocked", done
    seen = (await blob.get_blob_properties()).immutability_policy
    assert seen.policy_mode and seen.expiry_time, vars(seen)
    error = await refused(409, "BlobImmutableDueToPolicy", blob.delete_blob())
    assert "[latchfs: until" in error.message, error.message
    await refused(
        400,
        "InvalidHeaderValue",
        blob.set_immutability_policy(
            ImmutabilityPolicy(expiry_time=now() - HOUR, policy_mode="Unlocked")
        ),
    )
    await blob.delete_immutability_policy()
    await blob.delete_blob()
    for call in (
        blob.set_legal_hold(True),
        blob.set_immutability_policy(policy),
        blob.delete_immutability_policy(),
    ):
        await refused(404, "BlobNotFound", call)


async def versions(it):
    container = await it.versioned.create_container("versions")
    blob = container.get_blob_client("v")
    first = await blob.upload_blob(b"one")
    second = await blob.upload_blob(b"two", overwrite=True)
    assert first["version_id"] and second["version_id"] > first["version_id"]
    old = container.get_blob_client("v", version_id=first["version_id"])
    assert await text(old) == b"one"
    assert (await old.get_blob_properties()).version_id == first["version_id"]
    assert await text(blob, version_id=first["version_id"]) == b"one"
    current = await blob.get_blob_properties()
    assert (current.version_id, current.is_current_version) == (second["version_id"], True)
    both = await listed(container.list_blobs(include="versions"))
    assert [(one.version_id, bool(one.is_current_version)) for one in both] == [
        (first["version_id"], False),
        (second["version_id"], True),
    ]
    newest = container.get_blob_client("v", version_id=second["version_id"])
    await refused(403, "OperationNotAllowedOnRootBlob", newest.delete_blob())
    await blob.delete_blob()
    assert not await blob.exists()
    left = await listed(container.list_blobs(include="versions"))
    assert len(left) == 2 and not any(one.is_current_version for one in left)
    await old.delete_blob()
    await refused(404, "BlobNotFound", old.delete_blob())
    await container.delete_container()
