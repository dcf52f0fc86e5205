// unstorage with its driver for blobs: texts, bytes, keys, metadata, a mount of two containers.
//
// Usage: unstorage.mjs READY_FILE. Fails where an answer is not as expected.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const packages = new URL("../../../.cache/libraries-node/package.json", import.meta.url);
const require = createRequire(packages);
const { createStorage } = require("unstorage");
const driver = require("unstorage/drivers/azure-storage-blob");
const { BlobServiceClient } = require("@azure/storage-blob");

const connectionString = JSON.parse(readFileSync(process.argv[2], "utf8")).connection_string;
const service = BlobServiceClient.fromConnectionString(connectionString);
for (const name of ["unstorage", "unstorage-mounted"]) {
  await service.createContainer(name);
}
const stored = (containerName) => driver({ connectionString, containerName });
const storage = createStorage({ driver: stored("unstorage") });
storage.mount("mounted", stored("unstorage-mounted"));

await storage.setItem("a:b", { n: 1, text: "Grüße" });
await storage.setItem("with blank & plus+", "text");
await storage.setItemRaw("mounted:bytes", Buffer.from([0, 255, 1]));
assert.deepEqual(await storage.getItem("a:b"), { n: 1, text: "Grüße" });
assert.equal(await storage.getItem("with blank & plus+"), "text");
assert.deepEqual([...(await storage.getItemRaw("mounted:bytes"))], [0, 255, 1]);
assert.deepEqual((await storage.getKeys()).sort(), ["a:b", "mounted:bytes", "with blank & plus+"]);
assert.deepEqual(await storage.getKeys("a"), ["a:b"]);
assert.equal(await storage.getItem("missing"), null);
assert.ok(Math.abs((await storage.getMeta("a:b")).mtime - Date.now()) < 600_000);
await storage.removeItem("a:b");
assert.equal(await storage.hasItem("a:b"), false);
await storage.clear();
assert.deepEqual(await storage.getKeys(), []);
