// The official Node SDK against a running latchfs: every public method, good and bad.
//
// Usage: node round.mjs FACTS, which is JSON. Fails with an assertion where an answer is not as
// expected, or where a method of the SDK was not called.
import { check } from "./check.mjs";
import { copies } from "./copies.mjs";
import { directoryClient } from "./directory.mjs";
import { fileClient } from "./file.mjs";
import { leases } from "./leases.mjs";
import { besideTheMount } from "./mount.mjs";
import { serviceClient } from "./service.mjs";
import { shareClient } from "./share.mjs";
import { signatures } from "./signatures.mjs";
import { transfers } from "./transfer.mjs";

const parts = [
  serviceClient,
  shareClient,
  directoryClient,
  fileClient,
  transfers,
  copies,
  leases,
  signatures,
  besideTheMount,
];
for (const part of parts) {
  await part();
}
console.log(`met ${check()} methods`);
