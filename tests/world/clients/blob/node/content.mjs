// Content: blocks, appends, pages, large uploads in parallel.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";

import { all, containerOf, nothing, readable, refused, textOf, wholeOf } from "./world.mjs";

const MIB = 1 << 20;
const id = (text) => Buffer.from(text).toString("base64");
const NEW = { conditions: { ifNoneMatch: "*" } };

export async function blocks() {
  const container = await containerOf("blocks");
  const blob = container.getBlockBlobClient("b");
  await blob.stageBlock(id("a"), "one", 3);
  await blob.stageBlock(id("b"), "two", 3);
  assert.equal((await blob.getBlockList("uncommitted")).uncommittedBlocks.length, 2);
  await blob.commitBlockList([id("b"), id("a")], { metadata: { m: "1" }, tags: { t: "1" } });
  assert.equal(await textOf(blob), "twoone");
  assert.deepEqual(
    (await blob.getBlockList("all")).committedBlocks.map(({ name }) => name),
    [id("b"), id("a")],
  );
  await refused(400, "InvalidBlockList", () => blob.commitBlockList([id("z")]));
  await refused(400, "InvalidQueryParameterValue", () => blob.stageBlock("no base64!", "x", 1));
  await refused(404, "BlobNotFound", () => container.getBlockBlobClient("no").getBlockList("all"));
  await refused(409, "BlobAlreadyExists", () => blob.upload("x", 1, NEW));
  const source = container.getBlockBlobClient("source");
  await source.upload("0123456789", 10);
  const url = await readable(source);
  await blob.stageBlockFromURL(id("c"), url, 2, 3);
  await blob.commitBlockList([id("c")]);
  assert.equal(await textOf(blob), "234");
  const none = await readable(container.getBlockBlobClient("none"));
  await refused(404, "CannotVerifyCopySource", () => blob.stageBlockFromURL(id("d"), none));
  await blob.syncUploadFromURL(url);
  assert.equal(await textOf(blob), "0123456789");
  await refused(404, "CannotVerifyCopySource", () => blob.syncUploadFromURL(none));
  await refused(501, "NotImplemented", () => blob.query("select * from BlobStorage"));
  await large(container);
  await container.delete();
}

async function large(container) {
  const blob = container.getBlockBlobClient("large");
  const bytes = Buffer.alloc(9 * MIB + 7, "large ");
  const options = { blockSize: MIB, maxSingleShotSize: MIB, concurrency: 4 };
  await blob.uploadData(bytes, options);
  assert.ok((await blob.downloadToBuffer(0, undefined, { blockSize: MIB })).equals(bytes));
  assert.equal((await blob.getBlockList("committed")).committedBlocks.length, 10);
  await blob.uploadStream(Readable.from([bytes, Buffer.from("end")]), MIB, 3);
  assert.equal((await blob.getProperties()).contentLength, bytes.length + 3);
  await assert.rejects(blob.uploadBrowserData(new Blob(["x"])), /Unrecognized body type/);
  const gone = nothing.getBlockBlobClient("b");
  await refused(404, "ContainerNotFound", () => gone.uploadData(bytes, options));
  await refused(404, "ContainerNotFound", () => gone.uploadStream(Readable.from([bytes]), MIB, 2));
  const folder = await mkdtemp(join(tmpdir(), "latchfs-"));
  try {
    const file = join(folder, "f");
    await writeFile(file, bytes);
    await blob.uploadFile(file, options);
    const { readableStreamBody } = await blob.download();
    assert.ok((await wholeOf(readableStreamBody)).equals(bytes));
    await refused(404, "ContainerNotFound", () => gone.uploadFile(file));
  } finally {
    await rm(folder, { recursive: true });
  }
}

export async function appends() {
  const container = await containerOf("appends");
  const blob = container.getBlobClient("log").getAppendBlobClient();
  assert.equal(container.getAppendBlobClient("log").url, blob.url);
  await refused(404, "BlobNotFound", () => blob.appendBlock("x", 1));
  await blob.create({ metadata: { a: "1" } });
  assert.equal((await blob.createIfNotExists()).succeeded, false);
  await refused(404, "ContainerNotFound", () =>
    nothing.getAppendBlobClient("b").createIfNotExists(),
  );
  await refused(409, "BlobAlreadyExists", () => blob.create(NEW));
  const first = await blob.appendBlock("one", 3);
  assert.deepEqual([first.blobAppendOffset, first.blobCommittedBlockCount], ["0", 1]);
  await refused(412, "AppendPositionConditionNotMet", () =>
    blob.appendBlock("x", 1, { conditions: { appendPosition: 0 } }),
  );
  const source = container.getBlockBlobClient("source");
  await source.upload("0123", 4);
  await blob.appendBlockFromURL(await readable(source), 1, 2);
  assert.equal(await textOf(blob), "one12");
  const none = await readable(container.getBlockBlobClient("none"));
  await refused(404, "CannotVerifyCopySource", () => blob.appendBlockFromURL(none, 0, 1));
  const { snapshot } = await blob.createSnapshot();
  assert.equal(await textOf(blob.withSnapshot(snapshot)), "one12");
  await refused(412, "AppendPositionConditionNotMet", () =>
    blob.seal({ conditions: { appendPosition: 1 } }),
  );
  await blob.seal();
  await refused(409, "BlobIsSealed", () => blob.appendBlock("x", 1));
  await container.delete();
}

export async function pages() {
  const container = await containerOf("pages");
  const blob = container.getBlobClient("disk").getPageBlobClient();
  await refused(400, "InvalidHeaderValue", () => blob.create(1000));
  await blob.create(4096, { blobSequenceNumber: 1 });
  assert.equal((await blob.createIfNotExists(4096)).succeeded, false);
  await refused(404, "ContainerNotFound", () =>
    nothing.getPageBlobClient("b").createIfNotExists(512),
  );
  const page = Buffer.alloc(1024, 1);
  await blob.uploadPages(page, 0, 1024);
  await refused(412, "SequenceNumberConditionNotMet", () =>
    blob.uploadPages(page, 0, 1024, { conditions: { ifSequenceNumberEqualTo: 2 } }),
  );
  const { snapshot } = await blob.createSnapshot();
  await blob.clearPages(0, 512);
  await refused(416, "InvalidPageRange", () => blob.clearPages(4096, 512));
  await blob.uploadPages(page, 2048, 1024);
  const ranges = await blob.getPageRanges(0, 4096);
  assert.deepEqual(ranges.pageRange, [{ offset: 512, count: 511 }, { offset: 2048, count: 1023 }]);
  assert.equal((await all(blob.listPageRanges(0, 4096))).length, 2);
  const older = blob.withSnapshot(snapshot);
  assert.deepEqual((await older.getPageRanges()).pageRange, [{ offset: 0, count: 1023 }]);
  const difference = await blob.getPageRangesDiff(0, 4096, snapshot);
  assert.deepEqual(difference.pageRange, [{ offset: 2048, count: 1023 }]);
  assert.deepEqual(difference.clearRange, [{ offset: 0, count: 511 }]);
  const items = await all(blob.listPageRangesDiff(0, 4096, snapshot));
  assert.deepEqual(items.filter(({ isClear }) => isClear).length, 1);
  const url = `${blob.url}?snapshot=${snapshot}`;
  const managed = await blob.getPageRangesDiffForManagedDisks(0, 4096, url);
  assert.deepEqual(managed.pageRange, difference.pageRange);
  await pagesRefused(container, blob);
  await blob.resize(512);
  await refused(400, "InvalidHeaderValue", () => blob.resize(1000));
  assert.equal((await blob.updateSequenceNumber("increment")).blobSequenceNumber, 2);
  const source = container.getBlockBlobClient("source");
  await source.upload(page, 1024);
  await blob.uploadPagesFromURL(await readable(source), 512, 0, 512);
  assert.ok((await blob.downloadToBuffer()).equals(Buffer.alloc(512, 1)));
  const none = await readable(container.getBlockBlobClient("none"));
  await refused(404, "CannotVerifyCopySource", () => blob.uploadPagesFromURL(none, 0, 0, 512));
  await refused(501, "NotImplemented", () =>
    container.getPageBlobClient("copy").startCopyIncremental(url),
  );
  await container.delete();
}

async function pagesRefused(container, blob) {
  const never = "2020-01-01T00:00:00.0000000Z";
  const gone = "PreviousSnapshotNotFound";
  await refused(409, gone, () => blob.getPageRangesDiff(0, 512, never));
  await refused(409, gone, () => all(blob.listPageRangesDiff(0, 512, never)));
  await refused(409, gone, () =>
    blob.getPageRangesDiffForManagedDisks(0, 512, `${blob.url}?snapshot=${never}`),
  );
  const flat = container.getBlockBlobClient("flat");
  await flat.upload("x", 1);
  const wrong = container.getPageBlobClient("flat");
  await refused(409, "InvalidBlobType", () => wrong.getPageRanges());
  await refused(409, "InvalidBlobType", () => all(wrong.listPageRanges()));
  await refused(409, "InvalidBlobType", () => wrong.updateSequenceNumber("increment"));
}
