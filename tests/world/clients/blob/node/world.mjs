// What every part of the round shares: the servers' addresses, clients, and how a refusal is seen.
import assert from "node:assert/strict";

import { record } from "../../queue/node/recorder.mjs";
import { library } from "./methods.mjs";

record(library);

export const { sdk } = library;
/** Account, key, endpoint and connection string of the server; `versioned`, the other one. */
export const facts = JSON.parse(process.argv[2]);
/** A refusal must be seen at once, not after the SDK has tried four times. */
export const ONE_TRY = { retryOptions: { maxTries: 1 } };
export const credential = new sdk.StorageSharedKeyCredential(facts.account, facts.key);
export const service = sdk.BlobServiceClient.fromConnectionString(
  facts.connection_string,
  ONE_TRY,
);
/** The same server, by somebody who does not have the key. */
export const stranger = sdk.BlobServiceClient.fromConnectionString(
  facts.connection_string.replace("AccountKey=E", "AccountKey=F"),
  ONE_TRY,
);
/** The server that keeps versions and leaves copies pending. */
export const versioned = new sdk.BlobServiceClient(facts.versioned, credential, ONE_TRY);
export const HOUR = 3_600_000;
export const A = "00000000-0000-4000-8000-00000000000a";
export const B = "00000000-0000-4000-8000-00000000000b";

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
    const told =
      error.code ?? error.details?.errorCode ?? error.response?.headers.get("x-ms-error-code");
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

/** A stream as one buffer. */
export const wholeOf = async (stream) => Buffer.concat(await all(stream));

/** The content of a blob, as text. */
export async function textOf(blob, ...args) {
  const answer = await blob.download(...args);
  return (await wholeOf(answer.readableStreamBody)).toString();
}

/** A new container of that name. */
export async function containerOf(name, of = service) {
  const container = of.getContainerClient(name);
  await container.create();
  return container;
}

/** The address of a blob as the source of a copy, with the right to read it. */
export const readable = (blob) =>
  blob.generateSasUrl({ permissions: sdk.BlobSASPermissions.parse("r"), expiresOn: later() });

/** A container that is not there. */
export const nothing = service.getContainerClient("nothing-here");
