// Whole files up and down, each longer than one range may be: from memory, disk and streams.
import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";

import { refused, service } from "./world.mjs";

const MIB = 1024 * 1024;
/** Two whole ranges and a bit of a third. */
const BYTES = Buffer.from(Array.from({ length: 1000 }, (_, at) => at % 251));
const LONG = Buffer.alloc(8 * MIB + 123, BYTES);

export async function transfers() {
  const { shareClient: share } = await service.createShare("transfers");
  const folder = await mkdtemp(join(tmpdir(), "latchfs-node-"));
  try {
    await uploads(share, folder);
    await downloads(share, folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function uploads(share, folder) {
  const path = join(folder, "long");
  await writeFile(path, LONG);
  const from = (offset, count) =>
    createReadStream(path, { start: offset, end: offset + (count ?? LONG.length) - 1 });
  const ways = {
    uploadData: (file, options) => file.uploadData(LONG, options),
    uploadFile: (file, options) => file.uploadFile(path, options),
    uploadResetableStream: (file, options) =>
      file.uploadResetableStream(from, LONG.length, options),
    uploadStream: (file, options) =>
      file.uploadStream(createReadStream(path), LONG.length, 4 * MIB, 4, options),
  };
  for (const [name, upload] of Object.entries(ways)) {
    const file = share.rootDirectoryClient.getFileClient(name);
    let done = 0;
    const onProgress = ({ loadedBytes }) => {
      done = loadedBytes;
    };
    await upload(file, { metadata: { by: name }, onProgress });
    assert.equal(done, LONG.length, name);
    assert.ok(LONG.equals(await file.downloadToBuffer()), name);
    assert.deepEqual((await file.getProperties()).metadata, { by: name });
    const nowhere = share.getDirectoryClient("no").getFileClient(name);
    await refused(404, "ParentNotFound", () => upload(nowhere));
  }
  const short = share.rootDirectoryClient.getFileClient("short");
  await assert.rejects(short.uploadStream(Readable.from([LONG]), 10, 4 * MIB, 1), RangeError);
  // Blobs are for browsers, and none is sent from here: of no bytes it makes the file alone.
  await short.uploadSeekableBlob(() => new Blob([]), 0);
  assert.equal((await short.getProperties()).contentLength, 0);
  const nowhere = share.getDirectoryClient("no").getFileClient("blob");
  await refused(404, "ParentNotFound", () => nowhere.uploadSeekableBlob(() => new Blob([]), 0));
}

async function downloads(share, folder) {
  const file = share.rootDirectoryClient.getFileClient("uploadData");
  const middle = await file.downloadToBuffer(3 * MIB, 2 * MIB, { rangeSize: MIB });
  assert.ok(LONG.subarray(3 * MIB, 5 * MIB).equals(middle));
  const path = join(folder, "down");
  await file.downloadToFile(path);
  assert.ok(LONG.equals(await readFile(path)));
  const none = share.rootDirectoryClient.getFileClient("none");
  await refused(404, "ResourceNotFound", () => none.downloadToBuffer());
  await refused(404, "ResourceNotFound", () => none.downloadToFile(path));
  const { fileClient: empty } = await share.createFile("empty", 0);
  assert.equal((await empty.downloadToBuffer()).length, 0);
}
