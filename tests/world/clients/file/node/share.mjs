// ShareClient: a share's properties, metadata, policies, permissions, statistics and snapshots,
// and the short cuts to what is in it.
import assert from "node:assert/strict";

import { all, later, refused, service, stranger } from "./world.mjs";

/** Full control for administrators: owner, group and one entry. */
const SDDL = "O:S-1-5-32-544G:S-1-5-32-544D:(A;;FA;;;S-1-5-32-544)";

export async function shareClient() {
  const share = service.getShareClient("shr-one");
  await creation(share);
  await properties(share);
  await policies(share);
  await permissions(share);
  await contents(share);
  await snapshots(share);
  await deletion(share);
}

const missing = () => service.getShareClient("shr-none");
const unknown = () => stranger.getShareClient("shr-one");

async function creation(share) {
  const made = await share.create({ quota: 7, accessTier: "Hot", metadata: { k: "v" } });
  assert.ok(made.etag && made.requestId && made.lastModified instanceof Date);
  await refused(409, "ShareAlreadyExists", () => share.create());
  assert.equal((await share.createIfNotExists()).succeeded, false);
  assert.equal((await service.getShareClient("shr-two").createIfNotExists()).succeeded, true);
  await refused(400, "InvalidResourceName", () =>
    service.getShareClient("no--good").createIfNotExists(),
  );
  assert.deepEqual([await share.exists(), await missing().exists()], [true, false]);
  await refused(403, "AuthenticationFailed", () => unknown().exists());
}

async function properties(share) {
  const first = await share.getProperties();
  assert.deepEqual([first.quota, first.accessTier, first.metadata], [7, "Hot", { k: "v" }]);
  await refused(404, "ShareNotFound", () => missing().getProperties());
  await share.setMetadata({ other: "two words" });
  const second = await share.getProperties();
  assert.deepEqual(second.metadata, { other: "two words" });
  assert.notEqual(second.etag, first.etag);
  await refused(400, "InvalidMetadata", () => share.setMetadata({ "not-a-name": "x" }));
  await share.setQuota(9);
  assert.equal((await share.getProperties()).quota, 9);
  await refused(400, "InvalidHeaderValue", () => share.setQuota(0));
  await share.setProperties({ quotaInGB: 11, accessTier: "Cool" });
  const third = await share.getProperties();
  assert.deepEqual([third.quota, third.accessTier], [11, "Cool"]);
  await refused(400, "InvalidHeaderValue", () => share.setProperties({ quotaInGB: 0 }));
  assert.equal((await share.getStatistics()).shareUsageBytes, 0);
  await refused(404, "ShareNotFound", () => missing().getStatistics());
}

async function policies(share) {
  const [startsOn, expiresOn] = [later(-60_000), later()].map((time) => {
    time.setMilliseconds(0);
    return time;
  });
  const policy = { id: "readers", accessPolicy: { startsOn, expiresOn, permissions: "rl" } };
  await share.setAccessPolicy([policy]);
  assert.deepEqual((await share.getAccessPolicy()).signedIdentifiers, [policy]);
  const many = Array.from({ length: 6 }, (_, id) => ({ ...policy, id: `${id}` }));
  await refused(400, "InvalidXmlDocument", () => share.setAccessPolicy(many));
  await share.setAccessPolicy([]);
  assert.deepEqual((await share.getAccessPolicy()).signedIdentifiers, []);
  await refused(404, "ShareNotFound", () => missing().getAccessPolicy());
}

async function permissions(share) {
  const { filePermissionKey } = await share.createPermission(SDDL);
  assert.equal((await share.getPermission(filePermissionKey)).permission, SDDL);
  await refused(400, "FileInvalidPermission", () => share.createPermission("nonsense"));
  await refused(400, "FileInvalidPermissionKey", () => share.getPermission("1*2"));
}

async function contents(share) {
  const { directoryClient } = await share.createDirectory("Dir A", { metadata: { d: "1" } });
  assert.deepEqual((await directoryClient.getProperties()).metadata, { d: "1" });
  await refused(409, "ResourceAlreadyExists", () => share.createDirectory("dir a"));
  const { fileClient } = await share.createFile("ä & b.txt", 5);
  assert.equal((await fileClient.getProperties()).contentLength, 5);
  await refused(404, "ParentNotFound", () => share.createFile("no/such.txt", 5));
  const found = await all(share.rootDirectoryClient.listFilesAndDirectories());
  assert.deepEqual(found.map(({ kind, name }) => [kind, name]).sort(), [
    ["directory", "Dir A"],
    ["file", "ä & b.txt"],
  ]);
  assert.equal(await share.getDirectoryClient("Dir A").exists(), true);
  await share.deleteFile("ä & b.txt");
  await refused(404, "ResourceNotFound", () => share.deleteFile("ä & b.txt"));
  await share.deleteDirectory("Dir A");
  await refused(404, "ResourceNotFound", () => share.deleteDirectory("Dir A"));
}

async function snapshots(share) {
  await share.createFile("then.txt", 3);
  const { snapshot } = await share.createSnapshot({ metadata: { taken: "now" } });
  await share.deleteFile("then.txt");
  const then = share.withSnapshot(snapshot);
  assert.deepEqual((await then.getProperties()).metadata, { taken: "now" });
  const found = await all(then.rootDirectoryClient.listFilesAndDirectories());
  assert.deepEqual(
    found.map((item) => item.name),
    ["then.txt"],
  );
  assert.deepEqual(await all(share.rootDirectoryClient.listFilesAndDirectories()), []);
  await refused(404, "ShareNotFound", () => missing().createSnapshot());
  const never = share.withSnapshot("2001-01-01T00:00:00.0000000Z");
  await refused(404, "ShareSnapshotNotFound", () => never.getProperties());
  assert.equal((await never.deleteIfExists()).succeeded, false);
}

async function deletion(share) {
  await refused(409, "ShareHasSnapshots", () => share.delete());
  await refused(409, "ShareHasSnapshots", () => share.deleteIfExists());
  await share.delete({ deleteSnapshots: "include" });
  assert.equal(await share.exists(), false);
  // While a deletion is fresh it is accepted again, as by the service.
  assert.equal((await share.deleteIfExists()).succeeded, true);
  assert.equal((await service.getShareClient("shr-two").deleteIfExists()).succeeded, true);
}
