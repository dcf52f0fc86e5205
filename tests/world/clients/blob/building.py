"""How clients are made, from one another and from what people have at hand, and what they say of
themselves."""

from asserting import text


async def play(it):
    container = await it.service.create_container("built")
    await container.upload_blob("a/b c", b"x")
    await by_connection_string(it)
    await by_url(it)
    await by_constructor(it)
    await root(it)
    await for_development(it)
    await it.service.delete_container("built")


def says(it, client, path):
    """Asserts on the addresses of a client."""
    url = f"{it.endpoint}/{path}"
    assert (client.url, client.primary_endpoint) == (url, url), client.url
    assert client.primary_hostname == it.endpoint.removeprefix("http://")
    assert client.location_mode == "primary"
    assert client.api_version == "2026-10-06", client.api_version


async def by_connection_string(it):
    face, string = it.face, it.connection
    service = face.BlobServiceClient.from_connection_string(string)
    says(it, service, "")
    assert await text(service.get_blob_client("built", "a/b c")) == b"x"
    container = face.ContainerClient.from_connection_string(string, "built")
    says(it, container, "built")
    assert await container.exists()
    blob = face.BlobClient.from_connection_string(string, "built", "a/b c")
    says(it, blob, "built/a/b%20c")
    assert await text(blob) == b"x"
    for client in (service, container, blob):
        await client.close()


async def by_url(it):
    named = {"account_name": it.account, "account_key": it.key}
    container = it.face.ContainerClient.from_container_url(f"{it.endpoint}/built", credential=named)
    says(it, container, "built")
    assert (await container.get_container_properties()).name == "built"
    blob = it.face.BlobClient.from_blob_url(f"{it.endpoint}/built/a/b%20c", credential=named)
    says(it, blob, "built/a/b%20c")
    assert await text(blob) == b"x"
    await container.close()
    await blob.close()


async def by_constructor(it):
    spare = {"credential": it.key, "secondary_hostname": "spare.example"}
    service = it.face.BlobServiceClient(it.endpoint, **spare)
    container = it.face.ContainerClient(it.endpoint, "built", **spare)
    blob = it.face.BlobClient(it.endpoint, "built", "a/b c", **spare)
    for client, path in ((service, ""), (container, "built"), (blob, "built/a/b%20c")):
        assert client.secondary_endpoint == f"http://spare.example/{path}"
        assert client.secondary_hostname == "spare.example"
    assert await blob.exists()
    for client in (service, container, blob):
        await client.close()


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
