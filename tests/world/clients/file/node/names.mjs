// What the Node SDK makes of the codes that the main round cannot show: with --error-names=service
// a file that is delete pending has the service's own code, and another program's lock is refused.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { mount, refused, service } from "./world.mjs";

const share = service.getShareClient("share");

async function deletePending() {
  const path = join(mount, "pending.txt");
  writeFileSync(path, "data");
  const descriptor = openSync(path, "r+");
  unlinkSync(path);
  const file = share.rootDirectoryClient.getFileClient("pending.txt");
  await refused(409, "DeletePending", () => file.download());
  await refused(409, "DeletePending", () => file.getProperties());
  closeSync(descriptor);
  await refused(404, "ResourceNotFound", () => file.getProperties());
}

/** Node has no byte-range locks; Python has. */
async function locked() {
  const path = join(mount, "locked.txt");
  writeFileSync(path, "x".repeat(100));
  const lock = "import fcntl,sys; f=open(sys.argv[1],'r+b'); fcntl.lockf(f,fcntl.LOCK_EX,10,20)";
  const holder = spawn("python3", ["-c", `${lock}; print('locked',flush=True); input()`, path], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  await once(holder.stdout, "data");
  const file = share.rootDirectoryClient.getFileClient("locked.txt");
  await refused(409, "FileLockConflict", () => file.download(20, 5));
  await refused(409, "FileLockConflict", () => file.uploadRange("y", 80, 1));
  holder.stdin.end("\n");
  await once(holder, "exit");
  await file.uploadRange("y", 80, 1);
}

await deletePending();
await locked();
console.log("met");
