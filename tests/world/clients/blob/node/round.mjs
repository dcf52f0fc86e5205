// The official Node SDK of blobs against a running latchfs: every public method, good and bad.
//
// Usage: node round.mjs FACTS; FACTS is JSON, as for rounds.py. Fails with an assertion where an
// answer is not as expected, or where a method of the SDK was not called.
import { check } from "../../queue/node/check.mjs";
import { batches } from "./batch.mjs";
import { blobClient } from "./blob.mjs";
import { containerClient } from "./container.mjs";
import { appends, blocks, pages } from "./content.mjs";
import { copies } from "./copies.mjs";
import { leases } from "./leases.mjs";
import { library, METHODS, UNSUPPORTED } from "./methods.mjs";
import { serviceClient } from "./service.mjs";
import { signatures } from "./signatures.mjs";

const parts = [
  serviceClient,
  containerClient,
  blobClient,
  blocks,
  appends,
  pages,
  copies,
  leases,
  batches,
  signatures,
];
for (const part of parts) {
  await part();
}
console.log(`met ${check(library.methods(), METHODS, UNSUPPORTED)} methods`);
