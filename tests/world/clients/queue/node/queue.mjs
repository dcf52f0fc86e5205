// QueueClient: queues as a whole, then their messages.
import assert from "node:assert/strict";

import {
  later, nothing, ONE_TRY, queueOf, facts, refused, sdk, service, stranger,
} from "./world.mjs";

export async function queueClient() {
  await life();
  await metadata();
  await policies();
  await absent();
}

async function life() {
  const queue = new sdk.QueueClient(facts.connection_string, "living", ONE_TRY);
  assert.equal(queue.name, "living");
  assert.equal(await queue.exists(), false);
  assert.equal((await queue.createIfNotExists({ metadata: { Colour: "Blue" } })).succeeded, true);
  const again = await queue.createIfNotExists({ metadata: { colour: "Green" } });
  assert.deepEqual([again.succeeded, again.errorCode], [false, "QueueAlreadyExists"]);
  await queue.create({ metadata: { colour: "Blue" } });
  await refused(409, "QueueAlreadyExists", () => queue.create());
  assert.equal(await queue.exists(), true);
  assert.equal((await queue.deleteIfExists()).succeeded, true);
  const gone = await queue.deleteIfExists();
  assert.deepEqual([gone.succeeded, gone.errorCode], [false, "QueueNotFound"]);
  const denied = stranger.getQueueClient("living");
  for (const call of ["exists", "createIfNotExists", "deleteIfExists"]) {
    await refused(403, "AuthenticationFailed", () => denied[call]());
  }
}

async function metadata() {
  const queue = await queueOf("described", { metadata: { Aa: "1", b: "2" } });
  let seen = await queue.getProperties();
  assert.deepEqual([seen.metadata, seen.approximateMessagesCount], [{ aa: "1", b: "2" }, 0]);
  await queue.setMetadata({ c: "3" });
  await queue.sendMessage("one");
  seen = await queue.getProperties();
  assert.deepEqual([seen.metadata, seen.approximateMessagesCount], [{ c: "3" }, 1]);
  await refused(400, "InvalidMetadata", () => queue.setMetadata({ "1a": "x" }));
  await queue.setMetadata();
  assert.deepEqual((await queue.getProperties()).metadata ?? {}, {});
  await queue.delete();
}

async function policies() {
  const queue = await queueOf("guarded");
  assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers, []);
  const accessPolicy = { startsOn: later(-60_000), expiresOn: later(), permissions: "raup" };
  await queue.setAccessPolicy([{ id: "one", accessPolicy }, { id: "two", accessPolicy: {} }]);
  const { signedIdentifiers: kept } = await queue.getAccessPolicy();
  assert.deepEqual(
    kept.map(({ id, accessPolicy }) => [id, accessPolicy?.permissions]),
    [
      ["one", "raup"],
      ["two", undefined],
    ],
  );
  assert.equal(kept[0].accessPolicy.expiresOn.getTime(), accessPolicy.expiresOn.getTime());
  const six = [...Array(6).keys()].map((number) => ({ id: `${number}`, accessPolicy }));
  await refused(400, "InvalidXmlDocument", () => queue.setAccessPolicy(six));
  await queue.setAccessPolicy();
  assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers, []);
  await service.deleteQueue("guarded");
}

async function absent() {
  for (const call of [
    () => nothing.delete(),
    () => nothing.getProperties(),
    () => nothing.setMetadata({}),
    () => nothing.getAccessPolicy(),
    () => nothing.setAccessPolicy([]),
    () => nothing.clearMessages(),
    () => nothing.sendMessage("x"),
    () => nothing.receiveMessages(),
    () => nothing.peekMessages(),
    () => nothing.updateMessage("id", "receipt"),
    () => nothing.deleteMessage("id", "receipt"),
  ]) {
    await refused(404, "QueueNotFound", call);
  }
}
