"""Queues as a whole: create, delete, metadata, access policies."""

from azure.core.exceptions import ResourceExistsError
from azure.storage.queue import AccessPolicy, QueueSasPermissions
from checks import HOUR, now, refused


async def existed(call):
    """Awaits `call`, which makes a queue that is there: 204, which the SDK takes for a refusal."""
    try:
        given = await call
    except ResourceExistsError as error:
        assert error.status_code == 204, error
        return
    raise AssertionError(f"the queue was there, and it gave {given!r}")


async def play(it):
    await life(it)
    await metadata(it)
    await policies(it)


async def life(it):
    queue = it.service.get_queue_client("living")
    await refused(404, "QueueNotFound", queue.get_queue_properties())
    await refused(404, "QueueNotFound", queue.delete_queue())
    await queue.create_queue(metadata={"Colour": "Blue"})
    await existed(queue.create_queue(metadata={"colour": "Blue"}))
    await refused(409, "QueueAlreadyExists", queue.create_queue())
    await refused(400, "InvalidMetadata", queue.create_queue(metadata={"1a": "x"}))
    await refused(400, "MetadataTooLarge", queue.create_queue(metadata={"a": "x" * 8_192}))
    seen = await queue.get_queue_properties()
    assert (seen.name, seen.metadata) == ("living", {"Colour": "Blue"})
    assert seen.approximate_message_count == 0
    await queue.send_message("one")
    await queue.send_message("two", visibility_timeout=60)
    assert (await queue.get_queue_properties()).approximate_message_count == 2
    await queue.delete_queue()
    error = await refused(404, "QueueNotFound", queue.send_message("three"))
    assert "the queue was deleted" in error.message, error
    # The name is free at once, and the new queue is empty.
    await queue.create_queue()
    assert (await queue.get_queue_properties()).approximate_message_count == 0
    async with it.opened("QueueClient", "living", credential="A" * 86 + "==") as stranger:
        await refused(403, "AuthenticationFailed", stranger.get_queue_properties())
    await queue.delete_queue()


async def metadata(it):
    queue = await it.service.create_queue("described", metadata={"a": "1", "b": "2"})
    await queue.set_queue_metadata({"C": "3"})
    assert (await queue.get_queue_properties()).metadata == {"C": "3"}
    await refused(400, "InvalidMetadata", queue.set_queue_metadata({"a-b": "x"}))
    await refused(400, "MetadataTooLarge", queue.set_queue_metadata({"a": "x" * 8_192}))
    await queue.set_queue_metadata()
    assert not (await queue.get_queue_properties()).metadata
    absent = it.service.get_queue_client("nothing-here")
    await refused(404, "QueueNotFound", absent.set_queue_metadata({"a": "1"}))
    await queue.delete_queue()


async def policies(it):
    queue = await it.service.create_queue("guarded")
    assert await queue.get_queue_access_policy() == {}
    start, expiry = now() - HOUR, now() + HOUR
    allowed = QueueSasPermissions(read=True, process=True)
    policy = AccessPolicy(permission=allowed, start=start, expiry=expiry)
    await queue.set_queue_access_policy({"one": policy, "empty": AccessPolicy()})
    kept = await queue.get_queue_access_policy()
    assert list(kept) == ["one", "empty"]
    assert str(kept["one"].permission) == "rp"
    assert kept["one"].start.startswith(start.strftime("%Y-%m-%dT%H:%M:%S"))
    six = {str(number): policy for number in range(6)}
    await refused(400, "InvalidXmlDocument", queue.set_queue_access_policy(six))
    await refused(400, "InvalidXmlDocument", queue.set_queue_access_policy({"x" * 65: policy}))
    await queue.set_queue_access_policy({})
    assert await queue.get_queue_access_policy() == {}
    absent = it.service.get_queue_client("nothing-here")
    await refused(404, "QueueNotFound", absent.get_queue_access_policy())
    await refused(404, "QueueNotFound", absent.set_queue_access_policy({}))
    await queue.delete_queue()
