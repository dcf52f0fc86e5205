"""How clients are made from what people have at hand, and what they say of themselves."""

from shared import by_url, made


async def play(it):
    await it.service.create_queue("built")
    await made(it, "QueueServiceClient", (), "", lists)
    await made(it, "QueueClient", ("built",), "built", is_queue)
    await by_url(it, it.face.QueueClient.from_queue_url, "built", is_queue)
    await it.service.delete_queue("built")


async def lists(service):
    assert "built" in [queue.name async for queue in service.list_queues()]


async def is_queue(queue):
    assert (await queue.get_queue_properties()).name == "built"
