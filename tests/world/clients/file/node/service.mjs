// ShareServiceClient: shares as a list, service properties, shares that come back.
import assert from "node:assert/strict";

import { all, byTwo, facts, later, properties, refused, sdk, service, stranger } from "./world.mjs";

export async function serviceClient() {
  assert.throws(() => sdk.ShareServiceClient.fromConnectionString("nonsense"));
  await shares();
  await pages();
  await deletedAndBack();
  await properties({ service, stranger });
  const key = () => service.getUserDelegationKey(new Date(), later());
  await refused(403, "AuthenticationFailed", key);
}

async function shares() {
  const { shareClient } = await service.createShare("svc-one", { metadata: { a: "b" } });
  assert.equal(shareClient.name, "svc-one");
  assert.equal(service.getShareClient("svc-one").url, `${facts.endpoint}/svc-one`);
  await refused(409, "ShareAlreadyExists", () => service.createShare("svc-one"));
  await refused(400, "InvalidResourceName", () => service.createShare("Not-Lower"));
  await refused(404, "ShareNotFound", () => service.deleteShare("svc-none"));
}

async function pages() {
  for (const name of ["svc-two", "svc-three", "svc-four"]) {
    await service.createShare(name);
  }
  const { snapshot } = await service.getShareClient("svc-two").createSnapshot();
  const names = ["svc-four", "svc-one", "svc-three", "svc-two"];
  const list = () => service.listShares({ prefix: "svc-" });
  assert.deepEqual(
    (await all(list())).map((share) => share.name),
    names,
  );
  const paged = await byTwo(list, (page) => page.shareItems ?? []);
  assert.deepEqual(
    paged.map((share) => share.name),
    names,
  );
  const options = { prefix: "svc-", includeMetadata: true, includeSnapshots: true };
  const shown = await all(service.listShares(options));
  assert.deepEqual(shown.find((share) => share.name === "svc-one").metadata, { a: "b" });
  const kept = shown.filter((share) => share.snapshot);
  assert.deepEqual(
    kept.map((share) => [share.name, share.snapshot]),
    [["svc-two", snapshot]],
  );
  const { properties } = shown.find((share) => share.name === "svc-two");
  assert.equal(properties.leaseState, "available");
  assert.ok(properties.quota >= 1 && properties.etag && properties.lastModified instanceof Date);
  await refused(403, "AuthenticationFailed", () => all(stranger.listShares()));
}

async function deletedAndBack() {
  const share = service.getShareClient("svc-four");
  await share.createFile("kept.txt", 4);
  await service.deleteShare("svc-four");
  assert.equal(await share.exists(), false);
  const gone = await all(service.listShares({ prefix: "svc-f", includeDeleted: true }));
  assert.deepEqual(
    gone.map((item) => [item.name, item.deleted]),
    [["svc-four", true]],
  );
  assert.ok(gone[0].properties.remainingRetentionDays > 0);
  await refused(404, "ShareNotFound", () => service.undeleteShare("svc-four", "01D0000000000000"));
  const back = await service.undeleteShare("svc-four", gone[0].version);
  assert.equal(
    (await back.rootDirectoryClient.getFileClient("kept.txt").getProperties()).contentLength,
    4,
  );
}
