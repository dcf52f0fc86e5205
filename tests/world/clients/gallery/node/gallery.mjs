// Bugs of the gallery with the SDK for JavaScript: both clients are in one process, on one thread.
//
// Called with how often a path is replayed; prints a line for each bug. The programs are those of
// blobs.py and others.py, which say what is wrong.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const sdk = createRequire(new URL("../../../../.cache/node/package.json", import.meta.url));
const { RaceFound, Server } = require("../../../../../clients/node/lib/index.js");
const { BlobServiceClient } = sdk("@azure/storage-blob");
const { TableClient } = sdk("@azure/data-tables");

const once = { retryOptions: { maxTries: 1 } };
const box = (cs) => BlobServiceClient.fromConnectionString(cs, once).getContainerClient("box");
const put = (blob, text, conditions) => blob.upload(text, Buffer.byteLength(text), { conditions });
const tableOptions = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
const counters = (cs) => TableClient.fromConnectionString(cs, "Counters", tableOptions);

async function text(blob) {
  return (await blob.downloadToBuffer()).toString();
}

async function newBox(latchfs, content) {
  const made = box(latchfs.connectionString);
  await made.create();
  for (const [name, data] of Object.entries(content)) await put(made.getBlockBlobClient(name), data);
  return made;
}

/** Reads a blob and its ETag in one request. */
async function read(blob) {
  const { etag, readableStreamBody } = await blob.download();
  const parts = [];
  for await (const part of readableStreamBody) parts.push(part);
  return { etag, content: Buffer.concat(parts).toString() };
}

/** Repeats a change until nobody came between. */
async function untilDone(work) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (error.statusCode !== 412) throw error;
    }
  }
}

const BUGS = {
  1: (latchfs, good) => async (run) => {
    await newBox(latchfs, { next: "0" });
    const take = (cs) => untilDone(async () => {
      const blob = box(cs).getBlockBlobClient("next");
      const { content, etag } = await read(blob);
      const ifMatch = good ? etag : (await blob.getProperties()).etag;
      await put(blob, String(Number(content) + 1), { ifMatch });
      return content;
    });
    const { A, B } = await run.clients({ A: take, B: take });
    assert.notEqual(A, B);
  },
  3: (latchfs, good) => async (run) => {
    const made = await newBox(latchfs, {});
    const create = (name) => async (cs) => {
      const blob = box(cs).getBlockBlobClient("owner");
      if (!good && (await blob.exists())) return false;
      try {
        await put(blob, name, good ? { ifNoneMatch: "*" } : undefined);
        return true;
      } catch (error) {
        if (!good || error.statusCode !== 409) throw error;
        return false;
      }
    };
    const created = await run.clients({ A: create("A"), B: create("B") });
    const owner = await text(made.getBlockBlobClient("owner"));
    assert.deepEqual(Object.keys(created).filter((name) => created[name]), [owner]);
  },
  4: (latchfs, good) => async (run) => {
    const made = await newBox(latchfs, { registry: "[]" });
    const register = (name) => (cs) => untilDone(async () => {
      const blob = box(cs).getBlockBlobClient("registry");
      const { content, etag } = await read(blob);
      const names = JSON.stringify([...JSON.parse(content), name]);
      await put(blob, names, good ? { ifMatch: etag } : undefined);
    });
    await run.clients({ A: register("A"), B: register("B") });
    const names = JSON.parse(await text(made.getBlockBlobClient("registry")));
    assert.deepEqual(names.sort(), ["A", "B"]);
  },
  7: (latchfs, good) => async (run) => {
    const made = await newBox(latchfs, { lock: "", count: "0" });
    const ignore = (status) => (error) => {
      if (error.statusCode !== status) throw error;
      return false;
    };
    const countUp = async (cs) => {
      const blob = box(cs).getBlockBlobClient("count");
      const lease = box(cs).getBlobClient(good ? "count" : "lock").getBlobLeaseClient();
      if (!(await lease.acquireLease(15).catch(ignore(409)))) return 0;
      const number = Number(await text(blob)) + 1;
      const own = good ? { leaseId: lease.leaseId } : undefined;
      return (await put(blob, String(number), own).catch(ignore(412))) ? 1 : 0;
    };
    const { A, B } = await run.clients({ A: countUp, B: countUp });
    assert.equal(Number(await text(made.getBlobClient("count"))), A + B);
  },
  9: (latchfs, good) => async (run) => {
    const made = counters(latchfs.connectionString);
    await made.createTable();
    await made.createEntity({ partitionKey: "p", rowKey: "r", Count: 0 });
    const countUp = (cs) => untilDone(async () => {
      const mine = counters(cs);
      const row = await mine.getEntity("p", "r");
      const changed = { partitionKey: "p", rowKey: "r", Count: row.Count + 1 };
      await mine.updateEntity(changed, "Replace", good ? { etag: row.etag } : {});
    });
    await run.clients({ A: countUp, B: countUp });
    assert.equal((await made.getEntity("p", "r")).Count, 2);
  },
};

const OPTIONS = { 7: { advance: 16_000 } };

async function play(latchfs, number, replays) {
  const options = OPTIONS[number] ?? {};
  const bad = BUGS[number](latchfs, false);
  const found = await latchfs.explore(bad, options).then(() => null, (error) => error);
  if (!(found instanceof RaceFound)) throw found ?? new Error(`${number} was not found`);
  const { path } = found.details;
  for (let i = 0; i < replays; i += 1) {
    await assert.rejects(latchfs.explore(bad, { ...options, path }), { name: "RaceFound" });
  }
  const good = await latchfs.explore(BUGS[number](latchfs, true), options);
  assert.ok(good.complete, good.notes.join("; "));
  console.log(`${number}: ${path}, corrected: ${good.numRuns} runs`);
}

const latchfs = await Server.start();
try {
  for (const number of Object.keys(BUGS)) {
    await play(latchfs, number, Number(process.argv[2]));
    await latchfs.reset();
  }
} finally {
  await latchfs.close();
}
console.log("played");
