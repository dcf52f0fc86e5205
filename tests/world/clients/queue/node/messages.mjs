// Messages: sent, received, peeked at, updated, deleted, cleared; receipts that die.
import assert from "node:assert/strict";

import { queueOf, refused } from "./world.mjs";

export async function messages() {
  const queue = await queueOf("messages");
  await life(queue);
  await receipts(queue);
  await texts(queue);
  await bounds(queue);
  await queue.delete();
}

async function life(queue) {
  assert.deepEqual((await queue.receiveMessages()).receivedMessageItems, []);
  assert.deepEqual((await queue.peekMessages()).peekedMessageItems, []);
  const sent = await queue.sendMessage("hello");
  assert.ok(sent.messageId && sent.popReceipt);
  assert.equal(sent.expiresOn - sent.insertedOn, 604_800_000);
  const [peeked] = (await queue.peekMessages({ numberOfMessages: 5 })).peekedMessageItems;
  assert.deepEqual([peeked.messageId, peeked.dequeueCount], [sent.messageId, 0]);
  const got = await queue.receiveMessages({ numberOfMessages: 32, visibilityTimeout: 60 });
  const [first] = got.receivedMessageItems;
  assert.deepEqual([first.messageText, first.dequeueCount], ["hello", 1]);
  assert.equal(first.nextVisibleOn - got.date, 60_000);
  assert.deepEqual((await queue.receiveMessages()).receivedMessageItems, []);
  await queue.deleteMessage(first.messageId, first.popReceipt);
  const again = () => queue.deleteMessage(first.messageId, first.popReceipt);
  const message = await refused(404, "MessageNotFound", again);
  assert.ok(message.includes("[latchfs: the message was removed"), message);
}

async function receipts(queue) {
  const sent = await queue.sendMessage("kept");
  const { receivedMessageItems } = await queue.receiveMessages({ visibilityTimeout: 60 });
  const [{ messageId: id, popReceipt: first }] = receivedMessageItems;
  const { popReceipt: second } = await queue.updateMessage(id, first, undefined, 60);
  const updated = await queue.updateMessage(id, second, "changed");
  assert.ok(updated.nextVisibleOn instanceof Date);
  for (const stale of [sent.popReceipt, first, second, "garbage"]) {
    await refused(400, "PopReceiptMismatch", () => queue.deleteMessage(id, stale));
    await refused(400, "PopReceiptMismatch", () => queue.updateMessage(id, stale, "lost"));
  }
  const last = (await queue.receiveMessages()).receivedMessageItems[0];
  assert.deepEqual([last.messageText, last.dequeueCount], ["changed", 2]);
  await queue.clearMessages();
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
  await refused(404, "MessageNotFound", () => queue.deleteMessage(id, last.popReceipt));
}

async function texts(queue) {
  for (const text of ["", "  blanks  ", "<&>\"'", "\u{1f600} \u00e9 \u4e2d", "x".repeat(65_536)]) {
    await queue.sendMessage(text);
    const [got] = (await queue.receiveMessages()).receivedMessageItems;
    assert.equal(got.messageText, text);
    await queue.deleteMessage(got.messageId, got.popReceipt);
  }
  await refused(413, "RequestBodyTooLarge", () => queue.sendMessage("x".repeat(65_537)));
}

async function bounds(queue) {
  const code = "OutOfRangeQueryParameterValue";
  const sent = await queue.sendMessage("bounded", { messageTimeToLive: -1 });
  assert.equal(sent.expiresOn.getUTCFullYear(), 9999);
  for (const numberOfMessages of [0, 33]) {
    await refused(400, code, () => queue.receiveMessages({ numberOfMessages }));
    await refused(400, code, () => queue.peekMessages({ numberOfMessages }));
  }
  for (const visibilityTimeout of [-1, 604_801]) {
    await refused(400, code, () => queue.receiveMessages({ visibilityTimeout }));
    await refused(400, code, () => queue.sendMessage("x", { visibilityTimeout }));
  }
  const { messageId: id, popReceipt } = sent;
  await refused(400, code, () => queue.updateMessage(id, popReceipt, "x", 604_801));
  const lives = { messageTimeToLive: 0 };
  await refused(400, "InvalidQueryParameterValue", () => queue.sendMessage("x", lives));
}
