"""How clients are made, from one another and from what people have at hand, and what they say of
themselves."""


async def play(it):
    await it.service.create_queue("built")
    await by_connection_string(it)
    await by_url(it)
    await by_constructor(it)
    await it.service.delete_queue("built")


def says(it, client, path):
    """Asserts on the addresses of a client."""
    url = f"{it.endpoint}/{path}"
    assert (client.url, client.primary_endpoint) == (url, url), client.url
    assert client.primary_hostname == it.endpoint.removeprefix("http://")
    assert client.location_mode == "primary"
    assert client.api_version == "2026-10-06"


async def by_connection_string(it):
    face, text = it.face, it.connection
    service = face.QueueServiceClient.from_connection_string(text)
    says(it, service, "")
    queue = face.QueueClient.from_connection_string(text, "built")
    says(it, queue, "built")
    assert (await queue.get_queue_properties()).name == "built"
    await service.close()
    await queue.close()


async def by_url(it):
    named = {"account_name": it.account, "account_key": it.key}
    queue = it.face.QueueClient.from_queue_url(f"{it.endpoint}/built", credential=named)
    says(it, queue, "built")
    assert (await queue.get_queue_properties()).name == "built"
    await queue.close()


async def by_constructor(it):
    spare = {"credential": it.key, "secondary_hostname": "spare.example"}
    service = it.face.QueueServiceClient(it.endpoint, **spare)
    assert service.secondary_endpoint == "http://spare.example/"
    assert service.secondary_hostname == "spare.example"
    queue = it.face.QueueClient(it.endpoint, "built", **spare)
    assert queue.secondary_endpoint == "http://spare.example/built"
    assert queue.secondary_hostname == "spare.example"
    assert (await queue.get_queue_properties()).name == "built"
    await service.close()
    await queue.close()
