// Copies within the server: done, refused, and broken off.
import assert from "node:assert/strict";

import { excuse } from "../../harness/node/recorder.mjs";
import { eventually, filled, refused, service } from "./world.mjs";

/** Long enough that a copy is still under way when its answer has come; all of it a hole. */
const ENDLESS = 4 * 1024 ** 4;

export async function copies() {
  const { shareClient: share } = await service.createShare("copies");
  const from = await filled(share, "from é.txt", "copied");
  await from.setMetadata({ of: "source" });
  const to = share.rootDirectoryClient.getFileClient("to.txt");
  const started = await to.startCopyFromURL(from.url);
  assert.ok(["success", "pending"].includes(started.copyStatus));
  const shown = await settled(to);
  assert.deepEqual(
    [shown.copyStatus, shown.copyId, shown.copyProgress, shown.metadata],
    ["success", started.copyId, "6/6", { of: "source" }],
  );
  assert.equal(String(await to.downloadToBuffer()), "copied");
  await refused(409, "NoPendingCopyOperation", () => to.abortCopyFromURL(started.copyId));
  const none = share.rootDirectoryClient.getFileClient("none");
  await refused(404, "ResourceNotFound", () => to.startCopyFromURL(none.url));
  await brokenOff(share, to);
}

async function settled(file) {
  let shown;
  await eventually("the end of a copy", async () => {
    shown = await file.getProperties();
    return shown.copyStatus !== "pending";
  });
  return shown;
}

async function brokenOff(share, to) {
  const { fileClient: endless } = await share.createFile("endless", ENDLESS);
  const { copyId, copyStatus } = await to.startCopyFromURL(endless.url);
  if (copyStatus === "success") {
    excuse("ShareFileClient.abortCopyFromURL", "good", "this file system shares extents");
    return;
  }
  await refused(409, "PendingCopyOperation", () => to.uploadRange("x", 0, 1));
  await to.abortCopyFromURL(copyId);
  const shown = await to.getProperties();
  assert.deepEqual([shown.copyStatus, shown.contentLength], ["aborted", 0]);
}
