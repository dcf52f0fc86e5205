// ShareFileClient: properties, metadata, ranges, names, and what is not done.
// Whole files up and down are in transfer.mjs, copies in copies.mjs, handles in mount.mjs.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";

import { filled, refused, sdk, service, stranger, wholeOf } from "./world.mjs";

const WHEN = new Date("2021-03-04T05:06:07.000Z");
const KIB = 1024;

export async function fileClient() {
  const { shareClient: share } = await service.createShare("files");
  await creation(share);
  await properties(share);
  await ranges(share);
  await rangeLists(share);
  await downloads(share);
  await renames(share);
  await deletion(share);
  await links(share);
}

const none = (share) => share.rootDirectoryClient.getFileClient("none");

async function creation(share) {
  const file = share.rootDirectoryClient.getFileClient("Made.txt");
  assert.deepEqual([file.shareName, file.path, file.name], ["files", "Made.txt", "Made.txt"]);
  const made = await file.create(10, {
    fileHttpHeaders: { fileContentType: "text/plain", fileCacheControl: "no-store" },
    metadata: { a: "1" },
    creationTime: WHEN,
    lastWriteTime: WHEN,
    fileAttributes: sdk.FileSystemAttributes.parse("ReadOnly"),
  });
  assert.ok(made.etag && made.fileId);
  const shown = await file.getProperties();
  assert.deepEqual(
    [shown.contentLength, shown.contentType, shown.cacheControl, shown.metadata],
    [10, "text/plain", "no-store", { a: "1" }],
  );
  assert.deepEqual([shown.fileCreatedOn, shown.fileLastWriteOn], [WHEN, WHEN]);
  await refused(409, "ReadOnlyAttribute", () => file.create(10));
  await refused(404, "ParentNotFound", () =>
    share.getDirectoryClient("no").getFileClient("x").create(1),
  );
  assert.deepEqual([await file.exists(), await none(share).exists()], [true, false]);
  const unknown = stranger.getShareClient("files").rootDirectoryClient.getFileClient("Made.txt");
  await refused(403, "AuthenticationFailed", () => unknown.exists());
}

async function properties(share) {
  const file = await filled(share, "props.txt", "0123456789");
  const first = await file.getProperties();
  await refused(404, "ResourceNotFound", () => none(share).getProperties());
  await file.setHttpHeaders({ fileContentType: "text/html", fileContentLanguage: "de" });
  const second = await file.getProperties();
  assert.deepEqual([second.contentType, second.contentLanguage], ["text/html", "de"]);
  assert.notEqual(second.etag, first.etag);
  await refused(404, "ResourceNotFound", () => none(share).setHttpHeaders({}));
  await file.setProperties({
    fileHttpHeaders: { fileContentDisposition: "inline" },
    fileAttributes: sdk.FileSystemAttributes.parse("Hidden|Archive"),
    lastWriteTime: WHEN,
  });
  const third = await file.getProperties();
  assert.deepEqual([third.contentDisposition, third.fileLastWriteOn], ["inline", WHEN]);
  assert.ok(third.fileAttributes.includes("Hidden"));
  await refused(404, "ResourceNotFound", () => none(share).setProperties());
  await file.resize(4);
  const fourth = await file.getProperties();
  assert.deepEqual([fourth.contentLength, fourth.contentDisposition], [4, "inline"]);
  await refused(404, "ResourceNotFound", () => none(share).resize(4));
  await file.setMetadata({ k: "v", other: "w" });
  assert.deepEqual((await file.getProperties()).metadata, { k: "v", other: "w" });
  await refused(400, "InvalidMetadata", () => file.setMetadata({ "9lives": "x" }));
}

async function ranges(share) {
  const file = await filled(share, "ranges.txt", "----------");
  const md5 = createHash("md5").update("abc").digest();
  const sent = await file.uploadRange("abc", 2, 3, { contentMD5: md5 });
  assert.ok(sent.etag && sent.isServerEncrypted);
  assert.deepEqual(Buffer.from(sent.contentMD5), md5);
  assert.equal((await file.uploadRange("abc", 2, 3)).contentMD5, undefined);
  await refused(416, "InvalidRange", () => file.uploadRange("abc", 9, 3));
  await refused(400, "Md5Mismatch", () =>
    file.uploadRange("abc", 0, 3, { contentMD5: createHash("md5").update("xyz").digest() }),
  );
  await file.uploadRange("XY", 7, 2, { contentChecksumAlgorithm: "StorageCrc64" });
  await file.clearRange(0, 1);
  await refused(416, "InvalidRange", () => file.clearRange(9, 3));
  assert.equal(String(await file.downloadToBuffer()), "\0-abc--XY-");
  const from = await filled(share, "from.txt", "0123456789");
  await refused(401, "CannotVerifyCopySource", () => file.uploadRangeFromURL(from.url, 4, 0, 3));
  await file.uploadRangeFromURL(await readable(from), 4, 0, 3);
  assert.equal(String(await file.downloadToBuffer()), "456bc--XY-");
  const missing = await readable(none(share));
  await refused(404, "ResourceNotFound", () => file.uploadRangeFromURL(missing, 0, 0, 3));
}

/** The URL of a file with a SAS that reads it. */
function readable(file) {
  const permissions = sdk.FileSASPermissions.parse("r");
  return file.generateSasUrl({ permissions, expiresOn: new Date(Date.now() + 3_600_000) });
}

async function rangeLists(share) {
  const { fileClient: file } = await share.createFile("sparse", 64 * KIB);
  await file.uploadRange(Buffer.alloc(4 * KIB, 1), 0, 4 * KIB);
  await file.uploadRange(Buffer.alloc(4 * KIB, 2), 32 * KIB, 4 * KIB);
  const pairs = (list) => list.map(({ start, end }) => [start, end]);
  const low = [0, 4 * KIB - 1];
  const high = [32 * KIB, 36 * KIB - 1];
  assert.deepEqual(pairs((await file.getRangeList()).rangeList), [low, high]);
  const part = await file.getRangeList({ range: { offset: 16 * KIB, count: 48 * KIB } });
  assert.deepEqual(pairs(part.rangeList), [high]);
  await refused(404, "ResourceNotFound", () => none(share).getRangeList());
  const { snapshot } = await share.createSnapshot();
  await file.clearRange(0, 4 * KIB);
  await file.uploadRange(Buffer.alloc(4 * KIB, 3), 16 * KIB, 4 * KIB);
  const diff = await file.getRangeListDiff(snapshot);
  assert.deepEqual(pairs(diff.ranges ?? []), [[16 * KIB, 20 * KIB - 1]]);
  assert.deepEqual(pairs(diff.clearRanges ?? []), [low]);
  await refused(409, "PreviousSnapshotNotFound", () =>
    file.getRangeListDiff("2001-01-01T00:00:00.0000000Z"),
  );
  const then = file.withShareSnapshot(snapshot);
  assert.deepEqual(pairs((await then.getRangeList()).rangeList), [low, high]);
}

async function downloads(share) {
  const file = await filled(share, "down.txt", "0123456789");
  const part = await file.download(2, 5, { rangeGetContentMD5: true });
  assert.equal(part.contentRange, "bytes 2-6/10");
  assert.equal(String(await wholeOf(part.readableStreamBody)), "23456");
  assert.deepEqual(Buffer.from(part.contentMD5), createHash("md5").update("23456").digest());
  const rest = await file.download(7);
  assert.equal(String(await wholeOf(rest.readableStreamBody)), "789");
  const checked = await file.download(0, undefined, { contentChecksumAlgorithm: "StorageCrc64" });
  assert.equal(String(await wholeOf(checked.readableStreamBody)), "0123456789");
  await refused(416, "InvalidRange", () => file.download(10));
  await refused(404, "ResourceNotFound", () => none(share).download());
}

async function renames(share) {
  const file = await filled(share, "old name.txt", "moved");
  const options = { metadata: { m: "1" }, contentType: "text/css" };
  const { destinationFileClient: moved } = await file.rename("new é+%41.txt", options);
  const shown = await moved.getProperties();
  assert.deepEqual([shown.metadata, shown.contentType], [{ m: "1" }, "text/css"]);
  assert.equal(await file.exists(), false);
  const there = share.rootDirectoryClient.getFileClient("new é+%41.txt");
  assert.equal(String(await there.downloadToBuffer()), "moved");
  await filled(share, "taken.txt", "taken");
  await refused(409, "ResourceAlreadyExists", () => there.rename("taken.txt"));
  await there.rename("taken.txt", { replaceIfExists: true });
  const taken = share.rootDirectoryClient.getFileClient("taken.txt");
  assert.equal(String(await taken.downloadToBuffer()), "moved");
}

async function deletion(share) {
  const file = await filled(share, "short lived", "x");
  await file.delete();
  await refused(404, "ResourceNotFound", () => file.delete());
  assert.equal((await file.deleteIfExists()).succeeded, false);
  await file.create(1);
  assert.equal((await file.deleteIfExists()).succeeded, true);
  await file.create(1, { fileAttributes: sdk.FileSystemAttributes.parse("ReadOnly") });
  await refused(409, "ReadOnlyAttribute", () => file.deleteIfExists());
}

async function links(share) {
  await filled(share, "target", "x");
  const at = (name) => share.rootDirectoryClient.getFileClient(name);
  assert.equal((await at("hard").createHardLink("target")).linkCount, 2);
  await refused(404, "ResourceNotFound", () => at("other").createHardLink("none"));
  await at("symbolic").createSymbolicLink("target");
  await refused(409, "ResourceAlreadyExists", () => at("hard").createSymbolicLink("target"));
  assert.equal((await at("symbolic").getSymbolicLink()).linkText, "target");
  await refused(404, "ResourceNotFound", () => at("hard").getSymbolicLink());
}
