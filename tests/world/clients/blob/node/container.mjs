// Containers: life, metadata, access, and the blobs in them.
import assert from "node:assert/strict";

import { all, containerOf, later, nothing, refused, service, stranger, textOf } from "./world.mjs";

export async function containerClient() {
  const container = service.getContainerClient("living");
  assert.equal(container.containerName, "living");
  assert.equal(await container.exists(), false);
  assert.equal((await container.deleteIfExists()).succeeded, false);
  await refused(404, "ContainerNotFound", () => container.delete());
  const made = await container.create({ metadata: { a: "1" } });
  await refused(409, "ContainerAlreadyExists", () => container.create());
  const again = await container.createIfNotExists();
  assert.deepEqual([again.succeeded, again.errorCode], [false, "ContainerAlreadyExists"]);
  const bad = service.getContainerClient("Not_A_Name");
  await refused(400, "InvalidResourceName", () => bad.createIfNotExists());
  const seen = await container.getProperties();
  assert.deepEqual([seen.etag, seen.metadata, seen.leaseState], [
    made.etag, { a: "1" }, "available",
  ]);
  await refused(404, "ContainerNotFound", () => nothing.getProperties());
  const strange = stranger.getContainerClient("living");
  await refused(403, "AuthenticationFailed", () => strange.exists());
  await refused(403, "AuthenticationFailed", () => strange.deleteIfExists());
  await refused(403, "AuthenticationFailed", () => strange.getAccountInfo());
  assert.ok((await container.getAccountInfo()).skuName);
  await container.setMetadata({ b: "2" });
  assert.deepEqual((await container.getProperties()).metadata, { b: "2" });
  await refused(412, "ConditionNotMet", () =>
    container.setMetadata({}, { conditions: { ifModifiedSince: later() } }),
  );
  await access(container);
  await lists(container);
  await container.deleteIfExists();
}

async function access(container) {
  const policy = { permissions: "r", startsOn: later(-60_000), expiresOn: later() };
  await container.setAccessPolicy("blob", [{ id: "one", accessPolicy: policy }]);
  const got = await container.getAccessPolicy();
  assert.equal(got.blobPublicAccess, "blob");
  assert.equal(got.signedIdentifiers[0].accessPolicy.permissions, "r");
  await refused(400, "InvalidXmlDocument", () =>
    container.setAccessPolicy(
      undefined,
      [...Array(6).keys()].map((n) => ({ id: `${n}`, accessPolicy: policy })),
    ),
  );
  await container.setAccessPolicy();
  assert.equal((await container.getAccessPolicy()).blobPublicAccess, undefined);
  await refused(404, "ContainerNotFound", () => nothing.getAccessPolicy());
}

async function lists(container) {
  const names = ["a", "a b", "a/1", "a/2/x", "b/é", "c%2Fd"];
  for (const name of names) {
    await container.uploadBlockBlob(name, name, Buffer.byteLength(name), {
      metadata: { m: "1" }, tags: { t: "1" },
    });
  }
  await refused(404, "ContainerNotFound", () => nothing.uploadBlockBlob("b", "x", 1));
  const flat = await all(container.listBlobsFlat({ includeMetadata: true, includeTags: true }));
  assert.deepEqual(flat.map((blob) => blob.name), names);
  assert.deepEqual([flat[0].metadata, flat[0].tags], [{ m: "1" }, { t: "1" }]);
  assert.equal(flat[0].properties.contentLength, 1);
  const pages = [];
  for await (const page of container.listBlobsFlat().byPage({ maxPageSize: 4 })) {
    pages.push(page.segment.blobItems.length);
  }
  assert.deepEqual(pages, [4, 2]);
  const level = await all(container.listBlobsByHierarchy("/"));
  assert.deepEqual(
    level.map(({ kind, name }) => [kind, name]).sort(),
    [["blob", "a"], ["blob", "a b"], ["blob", "c%2Fd"], ["prefix", "a/"], ["prefix", "b/"]],
  );
  const inner = await all(container.listBlobsByHierarchy("/", { prefix: "a/" }));
  assert.deepEqual(inner.map(({ name }) => name).sort(), ["a/1", "a/2/"]);
  await refused(404, "ContainerNotFound", () => all(nothing.listBlobsFlat()));
  await refused(404, "ContainerNotFound", () => all(nothing.listBlobsByHierarchy("/")));
  const found = await all(container.findBlobsByTags("\"t\" = '1'"));
  assert.equal(found.length, names.length);
  await refused(400, "InvalidQueryParameterValue", () =>
    all(container.findBlobsByTags("\"t\" <> '1'")),
  );
  assert.equal(await textOf(container.getBlobClient("b/é")), "b/é");
  await container.deleteBlob("b/é");
  await refused(404, "BlobNotFound", () => container.deleteBlob("b/é"));
}
