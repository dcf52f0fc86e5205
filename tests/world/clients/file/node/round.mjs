// The official Node SDK of files against a running latchfs: every public method, good and bad.
//
// Usage: node round.mjs FACTS, which is JSON.
import { play } from "../../harness/node/play.mjs";
import { copies } from "./copies.mjs";
import { directoryClient } from "./directory.mjs";
import { fileClient } from "./file.mjs";
import { leases } from "./leases.mjs";
import { library, METHODS, UNSUPPORTED } from "./methods.mjs";
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
await play(library, METHODS, UNSUPPORTED, parts);
