// What every part of the round shares: the server's address, clients, and how a refusal is seen.
import assert from "node:assert/strict";
import { record } from "./recorder.mjs";
import { library } from "./methods.mjs";

record(library);

export const { sdk } = library;
/** Account, key, endpoint and connection string of the server. */
export const facts = JSON.parse(process.argv[2]);
/** A refusal must be seen at once, not after the SDK has tried four times. */
export const ONE_TRY = { retryOptions: { maxTries: 1 } };
export const credential = new sdk.StorageSharedKeyCredential(facts.account, facts.key);
export const service = sdk.QueueServiceClient.fromConnectionString(
  facts.connection_string,
  ONE_TRY,
);
/** The same server, by somebody who does not have the key. */
export const stranger = sdk.QueueServiceClient.fromConnectionString(
  facts.connection_string.replace("AccountKey=E", "AccountKey=F"),
  ONE_TRY,
);
export const HOUR = 3_600_000;

/** A time so many milliseconds from now. */
export const later = (milliseconds = HOUR) => new Date(Date.now() + milliseconds);

/** The document of the refusal that `call` must meet. */
export async function refused(status, code, call) {
  let value;
  try {
    value = await call();
  } catch (error) {
    assert.ok(error instanceof sdk.RestError, error.stack);
    // The answer to a HEAD has no body: its code is in a header alone.
    const told = error.code ?? error.details?.errorCode;
    assert.deepEqual([error.statusCode, told], [status, code], error.message);
    return error.response?.bodyAsText ?? error.message;
  }
  assert.fail(`${status} ${code} expected, not ${JSON.stringify(value)}`);
}

/** All of a list. */
export async function all(list) {
  const items = [];
  for await (const item of list) {
    items.push(item);
  }
  return items;
}

/** A new queue of that name. */
export async function queueOf(name, options) {
  const queue = service.getQueueClient(name);
  await queue.create(options);
  return queue;
}

/** A queue that is not there. */
export const nothing = service.getQueueClient("nothing-here");
