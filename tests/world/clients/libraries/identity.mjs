// DefaultAzureCredential as in production code: all that is special is in variables.
//
// Usage: identity.mjs READY_FILE. Fails where an answer is not as expected.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const packages = new URL("../../../.cache/libraries-node/package.json", import.meta.url);
const require = createRequire(packages);
const { DefaultAzureCredential } = require("@azure/identity");
const { BlobServiceClient } = require("@azure/storage-blob");
const { QueueServiceClient } = require("@azure/storage-queue");

const { endpoints } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const credential = new DefaultAzureCredential();
const blobs = new BlobServiceClient(endpoints.blob, credential).getContainerClient("identity-js");
await blobs.create();
await blobs.getBlockBlobClient("a").upload("x", 1);
assert.equal((await blobs.getBlobClient("a").downloadToBuffer()).toString(), "x");
const jobs = new QueueServiceClient(endpoints.queue, credential).getQueueClient("identity-js");
await jobs.create();
await jobs.sendMessage("one");
const { receivedMessageItems } = await jobs.receiveMessages();
assert.equal(receivedMessageItems[0].messageText, "one");
await assert.rejects(credential.getToken("https://vault.azure.net/.default"));
