// Copies, at once, polled, pending and aborted.
import assert from "node:assert/strict";

import { A, containerOf, readable, refused, textOf, versioned } from "./world.mjs";

export async function copies() {
  const container = await containerOf("copies");
  const source = container.getBlockBlobClient("from é");
  const target = container.getBlobClient("to");
  await source.upload("copied", 6, { metadata: { a: "1" } });
  const poller = await target.beginCopyFromURL(source.url);
  assert.equal((await poller.pollUntilDone()).copyStatus, "success");
  assert.equal(await textOf(target), "copied");
  assert.equal((await target.getProperties()).copyProgress, "6/6");
  await refused(404, "BlobNotFound", () =>
    target.beginCopyFromURL(container.getBlobClient("none").url),
  );
  const done = await target.syncCopyFromURL(await readable(source));
  assert.equal(done.copyStatus, "success");
  const none = await readable(container.getBlobClient("none"));
  await refused(404, "CannotVerifyCopySource", () => target.syncCopyFromURL(none));
  await refused(409, "NoPendingCopyOperation", () => target.abortCopyFromURL(A));
  await pending();
  await container.delete();
}

async function pending() {
  const container = await containerOf("pending", versioned);
  const source = container.getBlockBlobClient("from");
  const target = container.getBlobClient("to");
  await source.upload("copied", 6);
  await target.beginCopyFromURL(source.url);
  const { copyId, copyStatus } = await target.getProperties();
  assert.equal(copyStatus, "pending");
  await refused(409, "CopyIdMismatch", () => target.abortCopyFromURL(A));
  await target.abortCopyFromURL(copyId);
  assert.equal((await target.getProperties()).copyStatus, "aborted");
  await container.delete();
}
