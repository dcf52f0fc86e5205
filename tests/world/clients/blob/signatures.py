"""Who is let in: keys, account and service signatures, stored policies, anonymous readers."""

from asserting import A, text
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.storage.blob import (
    AccessPolicy,
    BlobSasPermissions,
    ContainerSasPermissions,
    ResourceTypes,
    Services,
)
from checks import HOUR, now, refused
from faces import listed
from shared import bad_account_signatures, by_account

DENIED = "AuthorizationPermissionMismatch"


async def play(it):
    container = await it.service.create_container("signed")
    await container.upload_blob("b", b"read me")
    await keys(it)
    await of_the_account(it)
    await of_a_container(it)
    await of_a_blob(it, container)
    await by_policy(it, container)
    await anonymous(it, container)
    await by_free_functions(it, container)
    await container.delete_container()


async def keys(it):
    async with it.by(AzureNamedKeyCredential(it.account, it.key)) as good:
        assert await text(good.get_blob_client("signed", "b")) == b"read me"
    error = await refused(
        403, "AuthenticationFailed", it.stranger.get_blob_client("signed", "b").get_blob_tags()
    )
    # What the server signed, for those who look for their mistake.
    assert "x-ms-version:" in error.message, error.message


async def of_the_account(it):
    async with by_account(it, start=now() - HOUR, ip="127.0.0.1", protocol="https,http") as it_can:
        assert "signed" in [one.name for one in await listed(it_can.list_containers())]
        blob = it_can.get_blob_client("signed", "b")
        assert await text(blob) == b"read me"
        for call in (
            blob.upload_blob(b"x", overwrite=True),
            blob.delete_blob(),
            blob.set_blob_tags({}),
            blob.acquire_lease(),
            it_can.create_container("more"),
            it_can.delete_container("signed"),
            blob.create_snapshot(),
        ):
            await refused(403, DENIED, call)
    async with by_account(it, ResourceTypes(object=True)) as objects:
        assert await text(objects.get_blob_client("signed", "b")) == b"read me"
    await bad_account_signatures(it, Services(queue=True), lambda one: one.list_containers())


async def of_a_container(it):
    def client(**letters):
        sas = it.face.generate_container_sas(
            it.account,
            "signed",
            account_key=it.key,
            permission=ContainerSasPermissions(**letters),
            expiry=now() + HOUR,
        )
        return it.by(AzureSasCredential(sas))

    async with client(read=True, list=True) as reader:
        container = reader.get_container_client("signed")
        assert [one.name for one in await listed(container.list_blobs())] == ["b"]
        assert await text(container.get_blob_client("b")) == b"read me"
        beyond = "AuthorizationFailure"
        await refused(403, beyond, container.delete_container())
        await refused(403, beyond, container.get_container_properties())
        await refused(403, DENIED, container.upload_blob("c", b"x"))
        other = reader.get_container_client("other")
        await refused(403, "AuthenticationFailed", listed(other.list_blobs()))
    async with client(write=True, delete=True, create=True, tag=True) as writer:
        container = writer.get_container_client("signed")
        await container.upload_blob("c", b"x", tags={"a": "1"})
        await listed(await container.delete_blobs("c"))
        await refused(403, DENIED, listed(container.list_blobs()))


async def of_a_blob(it, owner):
    def client(name="b", more=None, **letters):
        sas = it.face.generate_blob_sas(
            it.account,
            "signed",
            name,
            account_key=it.key,
            permission=BlobSasPermissions(**letters),
            expiry=now() + HOUR,
            **more or {},
        )
        return it.by(sas)

    overrides = {"content_type": "over/ridden", "cache_control": "none"}
    async with client(more=overrides, read=True) as reader:
        blob = reader.get_blob_client("signed", "b")
        download = await blob.download_blob()
        assert download.properties.content_settings.content_type == "over/ridden"
        await refused(403, DENIED, blob.upload_blob(b"x", overwrite=True))
        await refused(403, DENIED, blob.get_blob_tags())
        other = reader.get_blob_client("signed", "other")
        await refused(403, "AuthenticationFailed", other.download_blob())
    async with client(create=True) as creator:
        await refused(
            403,
            "UnauthorizedBlobOverwrite",
            creator.get_blob_client("signed", "b").upload_blob(b"x", overwrite=True),
        )
    async with client("new", create=True) as creator:
        await creator.get_blob_client("signed", "new").upload_blob(b"x")
    async with client("log", add=True) as adder:
        await owner.get_blob_client("log").create_append_blob()
        await adder.get_blob_client("signed", "log").append_block(b"x")
    async with client(delete=True) as deleter:
        await owner.get_blob_client("b").acquire_lease(lease_id=A)
        blob = deleter.get_blob_client("signed", "b")
        await refused(403, DENIED, blob.acquire_lease(lease_id=A))
        assert await it.face.BlobLeaseClient(blob, A).break_lease() == 0
    async with client(tag=True) as tagger:
        await tagger.get_blob_client("signed", "b").set_blob_tags({"a": "1"})
    taken = await owner.get_blob_client("b").create_snapshot()
    async with client(more={"snapshot": taken["snapshot"]}, read=True) as reader:
        blob = reader.get_blob_client("signed", "b", snapshot=taken["snapshot"])
        assert await text(blob) == b"read me"
    await owner.get_blob_client("b").delete_blob(delete_snapshots="only")


async def by_policy(it, container):
    policy = AccessPolicy(ContainerSasPermissions(read=True), now() + HOUR, now() - HOUR)
    await container.set_container_access_policy({"reading": policy})
    sas = it.face.generate_blob_sas(
        it.account, "signed", "b", account_key=it.key, policy_id="reading"
    )
    async with it.by(sas) as reader:
        blob = reader.get_blob_client("signed", "b")
        assert await text(blob) == b"read me"
        await refused(403, DENIED, blob.delete_blob())
        await container.set_container_access_policy({})
        await refused(403, "AuthenticationFailed", blob.download_blob())


async def anonymous(it, container):
    async with it.by(None) as anybody:
        blob = anybody.get_blob_client("signed", "b")
        await refused(401, "NoAuthenticationInformation", blob.download_blob())
        await container.set_container_access_policy({}, public_access="blob")
        assert await text(blob) == b"read me"
        inside = anybody.get_container_client("signed")
        await refused(401, "NoAuthenticationInformation", listed(inside.list_blobs()))
        await container.set_container_access_policy({}, public_access="container")
        assert "b" in [one.name for one in await listed(inside.list_blobs())]
        await refused(401, "NoAuthenticationInformation", blob.delete_blob())


async def by_free_functions(it, container):
    """The SDK's two functions that need no client."""
    import inspect
    import io

    from azure.storage import blob as sync
    from azure.storage.blob import aio

    library = {"sync": sync, "aio": aio}[it.face.name]

    async def call(name, *args, **kwargs):
        value = getattr(library, name)(*args, **kwargs)
        return await value if inspect.isawaitable(value) else value

    url = f"{it.endpoint}/signed/free"
    await call("upload_blob_to_url", url, b"by url", credential=it.key)
    out = io.BytesIO()
    await call("download_blob_from_url", url, out, credential=it.key)
    assert out.getvalue() == b"by url"
    await refused(
        409,
        "BlobAlreadyExists",
        call("upload_blob_to_url", url, b"again", credential=it.key, retry_total=0),
    )
    await refused(
        404,
        "BlobNotFound",
        call("download_blob_from_url", f"{it.endpoint}/signed/none", out, credential=it.key),
    )
