// QueueServiceClient: queues as a list, service properties, statistics.
import assert from "node:assert/strict";

import {
  all, credential, later, ONE_TRY, facts, properties, refused, sdk, service, stranger,
} from "./world.mjs";

export async function serviceClient() {
  assert.throws(() => sdk.QueueServiceClient.fromConnectionString("nonsense"));
  await queues();
  await pages();
  const before = await properties({ service, stranger });
  assert.equal(before.queueAnalyticsLogging.read, false);
  await statistics();
  // A bearer alone may ask for such a key.
  const key = () => service.getUserDelegationKey(new Date(), later());
  await refused(403, "AuthenticationFailed", key);
}

async function queues() {
  await service.createQueue("svc-one", { metadata: { a: "b" } });
  assert.equal(service.getQueueClient("svc-one").url, `${facts.endpoint}/svc-one`);
  await refused(409, "QueueAlreadyExists", () => service.createQueue("svc-one"));
  await refused(400, "InvalidResourceName", () => service.createQueue("Not-Lower"));
  await refused(404, "QueueNotFound", () => service.deleteQueue("svc-none"));
}

async function pages() {
  for (const name of ["svc-two", "svc-three", "svc-four"]) {
    await service.createQueue(name);
  }
  const names = ["svc-four", "svc-one", "svc-three", "svc-two"];
  const list = () => service.listQueues({ prefix: "svc-" });
  assert.deepEqual(
    (await all(list())).map((queue) => queue.name),
    names,
  );
  const paged = [];
  let continuationToken;
  do {
    const { value } = await list().byPage({ maxPageSize: 3, continuationToken }).next();
    paged.push(...value.queueItems);
    ({ continuationToken } = value);
  } while (continuationToken);
  assert.deepEqual(
    paged.map((queue) => queue.name),
    names,
  );
  const shown = await all(service.listQueues({ prefix: "svc-o", includeMetadata: true }));
  assert.deepEqual(shown, [{ name: "svc-one", metadata: { a: "b" } }]);
  await refused(403, "AuthenticationFailed", () => all(stranger.listQueues()));
  for (const name of names) {
    await service.deleteQueue(name);
  }
}

/** They are the secondary's: the primary has none. */
async function statistics() {
  const url = `${facts.endpoint}-secondary`;
  const secondary = new sdk.QueueServiceClient(url, credential, ONE_TRY);
  // The SDK reads the answer and gives nothing of it to its caller.
  const { _response } = await secondary.getStatistics();
  assert.match(_response.bodyAsText, /<Status>live<\/Status><LastSyncTime>.* GMT</);
  await refused(400, "InvalidQueryParameterValue", () => service.getStatistics());
}
