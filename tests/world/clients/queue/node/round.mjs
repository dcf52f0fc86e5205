// The official Node SDK of queues against a running latchfs: every public method, good and bad.
//
// Usage: node round.mjs FACTS, which is JSON. Fails with an assertion where an answer is not as expected, or
// where a method of the SDK was not called.
import { check } from "./check.mjs";
import { messages } from "./messages.mjs";
import { library, METHODS, UNSUPPORTED } from "./methods.mjs";
import { queueClient } from "./queue.mjs";
import { serviceClient } from "./service.mjs";
import { signatures } from "./signatures.mjs";

for (const part of [serviceClient, queueClient, messages, signatures]) {
  await part();
}
console.log(`met ${check(library.methods(), METHODS, UNSUPPORTED)} methods`);
