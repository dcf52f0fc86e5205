"""How clients are made from what people have at hand, and what they say of themselves."""

from asserting import text
from shared import by_url, made


async def play(it):
    container = await it.service.create_container("built")
    await container.upload_blob("a/b c", b"x")
    await made(it, "BlobServiceClient", (), "", has_blob)
    await made(it, "ContainerClient", ("built",), "built", is_container)
    await made(it, "BlobClient", ("built", "a/b c"), "built/a/b%20c", is_blob)
    await by_url(it, it.face.ContainerClient.from_container_url, "built", is_container)
    await by_url(it, it.face.BlobClient.from_blob_url, "built/a/b%20c", is_blob)
    await root(it)
    await for_development(it)
    await it.service.delete_container("built")


async def has_blob(service):
    await is_blob(service.get_blob_client("built", "a/b c"))


async def is_container(container):
    assert await container.exists()
    assert (await container.get_container_properties()).name == "built"


async def is_blob(blob):
    assert await blob.exists()
    assert await text(blob) == b"x"


async def root(it):
    """The root container, whose blobs need no container in their address."""
    container = await it.service.create_container("$root")
    await container.upload_blob("of-root", b"root")
    blob = it.face.BlobClient.from_blob_url(f"{it.endpoint}/$root/of-root", credential=it.key)
    assert await text(blob) == b"root"
    await blob.close()
    await container.delete_container()


async def for_development(it):
    """The short connection string means the port that a start takes unless it is told another."""
    client = it.face.BlobServiceClient.from_connection_string("UseDevelopmentStorage=true")
    assert client.url == "http://127.0.0.1:10000/devstoreaccount1/", client.url
    await client.close()
