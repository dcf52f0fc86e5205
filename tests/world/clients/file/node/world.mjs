// What every part of the round shares: the server's address, clients, and how a refusal is seen.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { record } from "./recorder.mjs";
import { sdk } from "./sdk.mjs";

record();

export const ready = JSON.parse(process.argv[2]);
/** Where the share `share` is mounted. */
export const mount = ready.mounts.share;
/** A refusal must be seen at once, not after the SDK has tried four times. */
export const ONE_TRY = { retryOptions: { maxTries: 1 } };
export const credential = new sdk.StorageSharedKeyCredential(ready.account, ready.key);
export const service = sdk.ShareServiceClient.fromConnectionString(
  ready.connection_string,
  ONE_TRY,
);
/** The same server, by somebody who does not have the key. */
export const stranger = sdk.ShareServiceClient.fromConnectionString(
  ready.connection_string.replace("AccountKey=E", "AccountKey=F"),
  ONE_TRY,
);
export const GUID = "00000000-1111-2222-3333-444444444444";
export const HOUR = 3_600_000;

/** A time so many milliseconds from now. */
export const later = (milliseconds = HOUR) => new Date(Date.now() + milliseconds);

/** The message of the refusal that `call` must meet. */
export async function refused(status, code, call) {
  let value;
  try {
    value = await call();
  } catch (error) {
    assert.ok(error instanceof sdk.RestError, error.stack);
    // The answer to a HEAD has no body: its code is in a header alone.
    const told = error.code ?? error.details?.errorCode;
    assert.deepEqual([error.statusCode, told], [status, code], error.message);
    return error.message;
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

/** A file with these bytes. */
export async function filled(share, name, bytes) {
  const file = share.rootDirectoryClient.getFileClient(name);
  await file.uploadData(Buffer.from(bytes));
  return file;
}

/** Waits until `condition` gives true. */
export async function eventually(what, condition) {
  const deadline = Date.now() + 20_000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, `waited for ${what}`);
  }
}

/** Runs `body` while a program holds a file of the mount, with the handle it has. */
export async function holding(name, options, body) {
  const stdio = ["pipe", "pipe", "inherit"];
  const holder = spawn(ready.latchfs, ["hold", join(mount, name), ...options], { stdio });
  const ended = once(holder, "exit");
  try {
    const lines = once(createInterface(holder.stdout), "line");
    const [line] = await Promise.race([lines, ended]);
    assert.equal(typeof line, "string", `the hold ended with ${line}`);
    return await body(JSON.parse(line).handle);
  } finally {
    holder.stdin.end();
    await ended;
    // The server learns of it a moment later.
    const file = service.getShareClient("share").rootDirectoryClient.getFileClient(name);
    await eventually("the end of a hold", async () => !(await all(file.listHandles())).length);
  }
}
