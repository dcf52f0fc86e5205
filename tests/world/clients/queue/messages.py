"""Messages: sent, received, peeked at, updated, deleted, cleared; receipts that die."""

import datetime

from azure.storage.queue import (
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    TextBase64DecodePolicy,
    TextBase64EncodePolicy,
)
from checks import now, recent, refused
from faces import listed

SECOND = datetime.timedelta(seconds=1)


async def play(it):
    queue = await it.service.create_queue("messages")
    await life(queue)
    await receipts(queue)
    await texts(queue)
    await times(queue)
    await pages(queue)
    await encoded(it)
    await bounds(queue)
    await absent(it)
    await queue.delete_queue()


async def life(queue):
    assert await queue.receive_message() is None
    assert await queue.peek_messages() == []
    sent = await queue.send_message("hello")
    assert sent.id and sent.pop_receipt and sent.content == "hello"
    recent(sent.inserted_on)
    assert sent.expires_on - sent.inserted_on == 604_800 * SECOND
    assert sent.next_visible_on == sent.inserted_on
    (peeked,) = await queue.peek_messages(5)
    assert (peeked.id, peeked.content, peeked.dequeue_count) == (sent.id, "hello", 0)
    assert peeked.pop_receipt is None and peeked.next_visible_on is None
    got = await queue.receive_message(visibility_timeout=60)
    assert (got.id, got.content, got.dequeue_count) == (sent.id, "hello", 1)
    assert abs(got.next_visible_on - now() - 60 * SECOND) < 30 * SECOND
    assert await queue.receive_message() is None and await queue.peek_messages() == []
    assert (await queue.get_queue_properties()).approximate_message_count == 1
    await queue.delete_message(got)
    error = await refused(404, "MessageNotFound", queue.delete_message(got))
    assert "removed" in error.message, error
    assert "DeleteMessage" in error.message.replace(" ", ""), error


async def receipts(queue):
    sent = await queue.send_message("kept")
    first = await queue.receive_message(visibility_timeout=60)
    late = queue.delete_message(sent.id, sent.pop_receipt)
    error = await refused(400, "PopReceiptMismatch", late)
    assert "hidden until" in error.message, error
    updated = await queue.update_message(first, visibility_timeout=0)
    assert updated.pop_receipt != first.pop_receipt
    again = await queue.receive_message(visibility_timeout=60)
    assert (again.id, again.dequeue_count, again.content) == (sent.id, 2, "kept")
    for stale in (sent, first, updated):
        await refused(400, "PopReceiptMismatch", queue.update_message(sent.id, stale.pop_receipt))
        await refused(400, "PopReceiptMismatch", queue.delete_message(sent.id, stale.pop_receipt))
    await refused(400, "PopReceiptMismatch", queue.delete_message(sent.id, "garbage"))
    changed = await queue.update_message(
        again.id, again.pop_receipt, content="changed", visibility_timeout=0
    )
    assert changed.content == "changed"
    last = await queue.receive_message()
    assert (last.content, last.dequeue_count) == ("changed", 3)
    await queue.delete_message(last.id, last.pop_receipt)
    await refused(404, "MessageNotFound", queue.update_message(last.id, last.pop_receipt))
    await refused(404, "MessageNotFound", queue.delete_message("no-such-id", "garbage"))


async def texts(queue):
    # The SDK writes carriage returns as they are, which XML reads as line feeds.
    several = "", "  blanks  ", "<&>\"'", "a\nb\n", "\U0001f600 \u00e9 \u4e2d", "x" * 65_536
    for text in several:
        sent = await queue.send_message(text)
        (peeked,) = await queue.peek_messages()
        assert (peeked.content or "") == text, repr(peeked.content)[:80]
        got = await queue.receive_message()
        assert (got.content or "") == text
        await queue.delete_message(got)
        assert got.id == sent.id
    await refused(413, "RequestBodyTooLarge", queue.send_message("x" * 65_537))
    await refused(413, "RequestBodyTooLarge", queue.send_message("\u00e9" * 32_769))
    sent = await queue.send_message("short")
    update = queue.update_message(sent, content="x" * 65_537)
    await refused(413, "RequestBodyTooLarge", update)
    await queue.clear_messages()


async def times(queue):
    forever = await queue.send_message("forever", time_to_live=-1)
    assert forever.expires_on.year == 9999
    long = await queue.send_message("long", time_to_live=604_801)
    assert long.expires_on - long.inserted_on == 604_801 * SECOND
    late = await queue.send_message("late", visibility_timeout=100, time_to_live=101)
    assert late.next_visible_on - late.inserted_on == 100 * SECOND
    assert [message.content for message in await queue.peek_messages(32)] == ["forever", "long"]
    await refused(400, "InvalidQueryParameterValue", queue.send_message("x", time_to_live=0))
    await refused(400, "InvalidQueryParameterValue", queue.send_message("x", time_to_live=-2))
    await queue.clear_messages()
    assert (await queue.get_queue_properties()).approximate_message_count == 0


async def pages(queue):
    for number in range(7):
        await queue.send_message(str(number))
    first = (
        await queue.receive_messages(messages_per_page=3, visibility_timeout=60).by_page().page()
    )
    assert [message.content for message in first] == ["0", "1", "2"]
    several = queue.receive_messages(messages_per_page=1, max_messages=2)
    assert [message.content for message in await listed(several)] == ["3", "4"]
    rest = queue.receive_messages(messages_per_page=2, visibility_timeout=60)
    assert [message.content for message in await listed(rest)] == ["5", "6"]
    assert await listed(queue.receive_messages()) == []
    await queue.clear_messages()


async def encoded(it):
    for encode, decode, content in (
        (TextBase64EncodePolicy(), TextBase64DecodePolicy(), "text \u00e9"),
        (BinaryBase64EncodePolicy(), BinaryBase64DecodePolicy(), b"\x00\xff bytes"),
    ):
        policies = {"message_encode_policy": encode, "message_decode_policy": decode}
        queue = it.service.get_queue_client("messages", **policies)
        await queue.send_message(content)
        got = await queue.receive_message()
        assert got.content == content
        await queue.delete_message(got)


async def bounds(queue):
    code = "OutOfRangeQueryParameterValue"
    sent = await queue.send_message("bounded")
    await refused(400, code, queue.send_message("x", visibility_timeout=604_801))
    await refused(400, code, queue.receive_message(visibility_timeout=604_801))
    await refused(400, code, listed(queue.receive_messages(messages_per_page=33)))
    await refused(400, code, queue.update_message(sent, visibility_timeout=604_801))
    await refused(400, code, queue.update_message(sent, visibility_timeout=-1))
    # More than 32 the SDK refuses by itself.
    await refused(400, code, queue.peek_messages(0))
    await queue.clear_messages()


async def absent(it):
    queue = it.service.get_queue_client("nothing-here")
    held = ("id", "receipt")
    for call in (
        queue.send_message("x"),
        queue.receive_message(),
        listed(queue.receive_messages()),
        queue.peek_messages(),
        queue.update_message(*held, visibility_timeout=0),
        queue.delete_message(*held),
        queue.clear_messages(),
    ):
        await refused(404, "QueueNotFound", call)
