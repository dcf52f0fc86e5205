// What the rounds of all SDKs share: the server's address, how a refusal is seen, and lists.
import assert from "node:assert/strict";

import { codeOf, record } from "./recorder.mjs";
import { RestError } from "./sdk.mjs";

/** Account, key, endpoint and connection string of the server, and what a round needs beside. */
export const facts = JSON.parse(process.argv[2]);
/** A refusal must be seen at once, not after the SDK has tried four times. */
export const ONE_TRY = { retryOptions: { maxTries: 1 } };
export const HOUR = 3_600_000;

/** A time so many milliseconds from now. */
export const later = (milliseconds = HOUR) => new Date(Date.now() + milliseconds);

/** Records an SDK of storage, and makes its clients of the service, one of them without the key. */
export function clients(library, type) {
  record(library);
  const { sdk } = library;
  const by = (text) => sdk[type].fromConnectionString(text, ONE_TRY);
  const { connection_string: text } = facts;
  return {
    sdk,
    credential: new sdk.StorageSharedKeyCredential(facts.account, facts.key),
    service: by(text),
    stranger: by(text.replace("AccountKey=E", "AccountKey=F")),
  };
}

/** The document of the refusal that `call` must meet. */
export async function refused(status, code, call) {
  let value;
  try {
    value = await call();
  } catch (error) {
    assert.ok(error instanceof RestError, error.stack);
    assert.deepEqual([error.statusCode, codeOf(error)], [status, code], error.message);
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

/** Walks a list by pages of two, each from the token of the last in a list made anew. */
export async function byTwo(make, itemsOf) {
  const items = [];
  let continuationToken;
  do {
    const pages = make().byPage({ maxPageSize: 2, continuationToken });
    const { value } = await pages.next();
    assert.ok(itemsOf(value).length <= 2);
    items.push(...itemsOf(value));
    ({ continuationToken } = value);
  } while (continuationToken);
  return items;
}

/** A stream as one buffer. */
export const wholeOf = async (stream) => Buffer.concat(await all(stream));

/** Sets the CORS rules of a service and reads them back; other properties stay as they are. */
export async function properties({ service, stranger }) {
  const before = await service.getProperties();
  assert.equal(before.hourMetrics.enabled, false);
  const rule = {
    allowedOrigins: "http://localhost:3000",
    allowedMethods: "GET,PUT",
    allowedHeaders: "x-ms-*",
    exposedHeaders: "etag",
    maxAgeInSeconds: 60,
  };
  await service.setProperties({ cors: [rule] });
  const after = await service.getProperties();
  assert.deepEqual(after.cors, [rule]);
  assert.deepEqual(after.hourMetrics, before.hourMetrics);
  const many = { cors: Array(6).fill(rule) };
  await refused(400, "InvalidXmlDocument", () => service.setProperties(many));
  await service.setProperties({ cors: [] });
  assert.equal((await service.getProperties()).cors?.length ?? 0, 0);
  await refused(403, "AuthenticationFailed", () => stranger.getProperties());
  return before;
}

/** What a signature by user delegation is made with, though nobody here gives out such a key. */
export const delegationKey = (signedService) => ({
  signedObjectId: "11111111-1111-1111-1111-111111111111",
  signedTenantId: "22222222-2222-2222-2222-222222222222",
  signedStartsOn: later(-60_000),
  signedExpiresOn: later(),
  signedService,
  signedVersion: "2026-04-06",
  value: facts.key,
});
