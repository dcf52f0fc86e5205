// Batches: delete and tier of many blobs in one request.
import assert from "node:assert/strict";

import { containerOf, credential, refused, service, stranger } from "./world.mjs";

export async function batches() {
  const container = await containerOf("batches");
  const blobs = [];
  for (const name of ["a", "b é", "c/d", "e"]) {
    const blob = container.getBlockBlobClient(name);
    await blob.upload("x", 1);
    blobs.push(blob);
  }
  const batch = service.getBlobBatchClient();
  const tiered = await batch.setBlobsAccessTier(blobs.slice(0, 2), "Cool");
  assert.deepEqual([tiered.subResponsesSucceededCount, tiered.subResponsesFailedCount], [2, 0]);
  assert.equal((await blobs[1].getProperties()).accessTier, "Cool");
  const none = container.getBlobClient("none");
  const deleted = await batch.deleteBlobs([blobs[0], none]);
  assert.deepEqual(deleted.subResponses.map(({ status }) => status), [202, 404]);
  assert.equal(deleted.subResponses[1].errorCode, "BlobNotFound");
  const mixed = container.getBlobBatchClient();
  const request = mixed.createBatch();
  await request.deleteBlob(blobs[1].url, credential);
  await request.deleteBlob(blobs[2].url, credential, { deleteSnapshots: "include" });
  const answer = await mixed.submitBatch(request);
  assert.equal(answer.subResponsesSucceededCount, 2);
  const strange = stranger.getBlobBatchClient();
  await refused(403, "AuthenticationFailed", () => strange.deleteBlobs([blobs[3]]));
  await refused(403, "AuthenticationFailed", () => strange.setBlobsAccessTier([blobs[3]], "Hot"));
  const empty = strange.createBatch();
  await empty.deleteBlob(blobs[3].url, credential);
  await refused(403, "AuthenticationFailed", () => strange.submitBatch(empty));
  await container.delete();
}
