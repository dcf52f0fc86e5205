"""Who is let in: keys, account and service signatures, stored policies, and who is not."""

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.storage.queue import (
    AccessPolicy,
    AccountSasPermissions,
    QueueSasPermissions,
    Services,
)
from checks import HOUR, now, refused
from faces import listed
from shared import bad_account_signatures, by_account

DENIED = "AuthorizationPermissionMismatch"


async def play(it):
    queue = await it.service.create_queue("signed")
    await keys(it)
    await of_the_account(it, queue)
    await of_a_queue(it, queue)
    await by_policy(it, queue)
    await queue.delete_queue()


async def keys(it):
    good = AzureNamedKeyCredential(it.account, it.key)
    async with it.opened("QueueClient", "signed", credential=good) as queue:
        assert (await queue.get_queue_properties()).name == "signed"
    async with it.opened("QueueClient", "signed", credential="A" * 86 + "==") as queue:
        error = await refused(403, "AuthenticationFailed", queue.peek_messages())
        # What the server signed, for those who look for their mistake.
        assert "x-ms-version:" in error.message, error.message


async def of_the_account(it, owner):
    await owner.send_message("x")
    async with by_account(it, start=now() - HOUR, ip="127.0.0.1", protocol="https,http") as service:
        assert "signed" in [queue.name for queue in await listed(service.list_queues())]
        queue = service.get_queue_client("signed")
        assert (await queue.get_queue_properties()).name == "signed"
        (peeked,) = await queue.peek_messages()
        for call in (
            queue.send_message("y"),
            queue.receive_message(),
            listed(queue.receive_messages()),
            queue.delete_message(peeked.id, "receipt"),
            queue.update_message(peeked.id, "receipt"),
            queue.clear_messages(),
            queue.delete_queue(),
            queue.get_queue_access_policy(),
        ):
            await refused(403, DENIED, call)
    await bad_account_signatures(it, Services(blob=True), lambda one: one.list_queues())
    async with by_account(it, permission=AccountSasPermissions(list=True)) as service:
        await refused(403, DENIED, service.get_service_properties())
    grown = AccountSasPermissions(
        read=True,
        write=True,
        create=True,
        delete=True,
        list=True,
        add=True,
        update=True,
        process=True,
    )
    async with by_account(it, permission=grown) as service:
        mine = await service.create_queue("mine")
        sent = await mine.send_message("z")
        sent = await mine.update_message(sent, visibility_timeout=0)
        got = await mine.receive_message()
        await mine.delete_message(got)
        await mine.clear_messages()
        await service.delete_queue("mine")
    await owner.clear_messages()


async def of_a_queue(it, owner):
    def sas(permission, **more):
        more = {"expiry": now() + HOUR, **more}
        return it.face.generate_queue_sas(it.account, "signed", it.key, permission, **more)

    sent = await owner.send_message("x")
    reads = sas(QueueSasPermissions(read=True))
    async with it.opened("QueueClient", "signed", credential=AzureSasCredential(reads)) as reader:
        assert len(await reader.peek_messages()) == 1
        assert (await reader.get_queue_properties()).approximate_message_count == 1
        await refused(403, DENIED, reader.receive_message())
        await refused(403, DENIED, reader.send_message("y"))
    async with it.opened("QueueClient", "signed", credential=sas("a")) as adder:
        await adder.send_message("y")
        await refused(403, DENIED, adder.peek_messages())
        await refused(403, DENIED, adder.get_queue_properties())
    async with it.opened("QueueClient", "signed", credential=sas("u")) as updater:
        sent = await updater.update_message(sent, content="changed", visibility_timeout=0)
        await refused(403, DENIED, updater.delete_message(sent))
    async with it.opened("QueueClient", "signed", credential=sas("p")) as worker:
        while got := await worker.receive_message():
            await worker.delete_message(got)
        await refused(403, DENIED, worker.clear_messages())
        await refused(403, DENIED, worker.update_message("id", "receipt"))
    await it.service.create_queue("elsewhere")
    async with it.opened("QueueClient", "elsewhere", credential=reads) as elsewhere:
        await refused(403, "AuthenticationFailed", elsewhere.peek_messages())
    await it.service.delete_queue("elsewhere")


async def by_policy(it, owner):
    policy = AccessPolicy(QueueSasPermissions(read=True), now() + HOUR, now() - HOUR)
    await owner.set_queue_access_policy({"readers": policy})
    sas = it.face.generate_queue_sas(it.account, "signed", it.key, policy_id="readers")
    async with it.opened("QueueClient", "signed", credential=sas) as reader:
        assert await reader.peek_messages() == []
        await refused(403, DENIED, reader.send_message("x"))
        await owner.set_queue_access_policy({})
        await refused(403, "AuthenticationFailed", reader.peek_messages())
