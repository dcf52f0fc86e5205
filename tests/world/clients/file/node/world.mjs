// What every part of the round of files shares.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { all, clients, facts } from "../../harness/node/world.mjs";
import { library } from "./methods.mjs";

export * from "../../harness/node/world.mjs";
export const { sdk, credential, service, stranger } = clients(library, "ShareServiceClient");
/** Where the share `share` is mounted. */
export const mount = facts.mounts.share;
export const GUID = "00000000-1111-2222-3333-444444444444";

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
  const holder = spawn(facts.latchfs, ["hold", join(mount, name), ...options], { stdio });
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
