// What every blob has: properties, conditions, snapshots, versions, soft delete, tiers, holds.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  all, containerOf, later, nothing, refused, service, stranger, textOf, versioned,
} from "./world.mjs";

export async function blobClient() {
  const container = await containerOf("blobs");
  const blob = container.getBlobClient("dir/a é");
  assert.deepEqual([blob.name, blob.containerName], ["dir/a é", "blobs"]);
  assert.equal(await blob.exists(), false);
  const strange = stranger.getContainerClient("blobs").getBlobClient("dir/a é");
  await refused(403, "AuthenticationFailed", () => strange.exists());
  await refused(404, "BlobNotFound", () => blob.getProperties());
  await refused(404, "BlobNotFound", () => blob.download());
  assert.equal((await blob.deleteIfExists()).succeeded, false);
  await refused(404, "BlobNotFound", () => blob.delete());
  const made = await blob.getBlockBlobClient().upload("hello", 5, {
    blobHTTPHeaders: { blobContentType: "text/plain", blobContentLanguage: "de" },
    metadata: { kind: "greeting" },
  });
  const seen = await blob.getProperties();
  assert.deepEqual(
    [seen.etag, seen.contentType, seen.contentLanguage, seen.contentLength, seen.blobType],
    [made.etag, "text/plain", "de", 5, "BlockBlob"],
  );
  assert.deepEqual([seen.metadata, seen.accessTier], [{ kind: "greeting" }, "Hot"]);
  assert.equal(await textOf(blob, 1, 3), "ell");
  await refused(416, "InvalidRange", () => blob.download(9, 1));
  await blob.setHTTPHeaders();
  assert.equal((await blob.getProperties()).contentType, undefined);
  await blob.setHTTPHeaders({ blobContentType: "a/b" });
  await blob.setMetadata({ other: "1" });
  await refused(404, "BlobNotFound", () => container.getBlobClient("no").setHTTPHeaders({}));
  await conditions(blob);
  await downloads(blob);
  await tags(blob);
  await older(container, blob);
  await versions();
  await retained(container, blob);
  await held(container);
  assert.ok((await blob.getAccountInfo()).skuName);
  await refused(403, "AuthenticationFailed", () => strange.getAccountInfo());
  await refused(403, "AuthenticationFailed", () => strange.deleteIfExists());
  await container.delete();
}

async function conditions(blob) {
  const { etag, lastModified } = await blob.getProperties();
  for (const [status, conditions] of [
    [412, { ifMatch: '"0x1"' }],
    [304, { ifNoneMatch: etag }],
    [304, { ifModifiedSince: later() }],
    [412, { ifUnmodifiedSince: new Date(lastModified.getTime() - 60_000) }],
    [412, { tagConditions: "\"a\" = 'b'" }],
  ]) {
    await refused(status, "ConditionNotMet", () => blob.download(0, undefined, { conditions }));
    await refused(status, "ConditionNotMet", () => blob.getProperties({ conditions }));
    const told = await refused(412, "ConditionNotMet", () =>
      blob.setMetadata({ a: "1" }, { conditions }),
    );
    assert.match(told, /\[latchfs: changed .* by Set Blob Metadata.*azsdk-js/);
    await refused(412, "ConditionNotMet", () => blob.delete({ conditions }));
  }
}

async function downloads(blob) {
  const buffer = await blob.downloadToBuffer(0, undefined, { blockSize: 2, concurrency: 2 });
  assert.equal(buffer.toString(), "hello");
  const missing = nothing.getBlobClient("b");
  await refused(404, "ContainerNotFound", () => missing.downloadToBuffer());
  const folder = await mkdtemp(join(tmpdir(), "latchfs-"));
  try {
    await blob.downloadToFile(join(folder, "b"));
    assert.equal(await readFile(join(folder, "b"), "utf8"), "hello");
    await refused(404, "ContainerNotFound", () => missing.downloadToFile(join(folder, "c")));
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function tags(blob) {
  await blob.setTags({ a: "1", b: "two + 2" });
  assert.deepEqual((await blob.getTags()).tags, { a: "1", b: "two + 2" });
  await refused(400, "TagsTooLarge", () =>
    blob.setTags(Object.fromEntries([...Array(11).keys()].map((n) => [`k${n}`, "v"]))),
  );
  await refused(404, "ContainerNotFound", () => nothing.getBlobClient("b").getTags());
}

async function older(container, blob) {
  const { snapshot } = await blob.createSnapshot();
  const old = blob.withSnapshot(snapshot);
  await blob.getBlockBlobClient().upload("later", 5);
  assert.equal(await textOf(old), "hello");
  assert.equal(await textOf(blob.getBlockBlobClient().withSnapshot(snapshot)), "hello");
  const states = await all(container.listBlobsFlat({ includeSnapshots: true }));
  assert.deepEqual(states.map((state) => state.snapshot), [snapshot, undefined]);
  await refused(409, "SnapshotsPresent", () => blob.delete());
  await old.delete();
  await refused(404, "BlobNotFound", () => container.getBlobClient("no").createSnapshot());
  await blob.setAccessTier("Cool");
  await refused(404, "BlobNotFound", () => container.getBlobClient("no").setAccessTier("Hot"));
  assert.equal((await blob.getProperties()).accessTier, "Cool");
}

async function versions() {
  const container = await containerOf("versions", versioned);
  const blob = container.getBlockBlobClient("v");
  const first = await blob.upload("one", 3);
  const second = await blob.upload("two", 3);
  assert.ok(first.versionId < second.versionId);
  assert.equal(await textOf(blob.withVersion(first.versionId)), "one");
  const states = await all(container.listBlobsFlat({ includeVersions: true }));
  assert.deepEqual(
    states.map((state) => [state.versionId, !!state.isCurrentVersion]),
    [[first.versionId, false], [second.versionId, true]],
  );
  await container.delete();
}

async function retained(container, blob) {
  await service.setProperties({ deleteRetentionPolicy: { enabled: true, days: 1 } });
  await blob.delete();
  assert.equal(await blob.exists(), false);
  const gone = await all(container.listBlobsFlat({ includeDeleted: true }));
  assert.ok(gone.some((state) => state.deleted), JSON.stringify(gone));
  await blob.undelete();
  assert.equal(await textOf(blob), "later");
  await refused(404, "ContainerNotFound", () => nothing.getBlobClient("b").undelete());
  await service.setProperties({ deleteRetentionPolicy: { enabled: false } });
}

async function held(container) {
  const blob = container.getBlockBlobClient("held");
  await blob.upload("x", 1);
  await blob.setLegalHold(true);
  await refused(409, "BlobImmutableDueToLegalHold", () => blob.delete());
  await blob.setLegalHold(false);
  await blob.setImmutabilityPolicy({ expiriesOn: later(), policyMode: "Unlocked" });
  await refused(409, "BlobImmutableDueToPolicy", () => blob.delete());
  await blob.deleteImmutabilityPolicy();
  await blob.deleteIfExists();
  await refused(404, "BlobNotFound", () => blob.setLegalHold(true));
  await refused(404, "BlobNotFound", () => blob.deleteImmutabilityPolicy());
  await refused(404, "BlobNotFound", () =>
    blob.setImmutabilityPolicy({ expiriesOn: later(), policyMode: "Unlocked" }),
  );
}
