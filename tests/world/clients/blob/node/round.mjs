// The official Node SDK of blobs against a running latchfs: every public method, good and bad.
//
// Usage: node round.mjs FACTS, which is JSON.
import { play } from "../../harness/node/play.mjs";
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
await play(library, METHODS, UNSUPPORTED, parts);
