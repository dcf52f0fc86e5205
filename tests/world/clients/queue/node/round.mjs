// The official Node SDK of queues against a running latchfs: every public method, good and bad.
//
// Usage: node round.mjs FACTS, which is JSON.
import { play } from "../../harness/node/play.mjs";
import { messages } from "./messages.mjs";
import { library, METHODS, UNSUPPORTED } from "./methods.mjs";
import { queueClient } from "./queue.mjs";
import { serviceClient } from "./service.mjs";
import { signatures } from "./signatures.mjs";

await play(library, METHODS, UNSUPPORTED, [serviceClient, queueClient, messages, signatures]);
