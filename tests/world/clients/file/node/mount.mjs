// While programs have files of the mount open: what the SDK may do, what it is told, and how it
// closes their handles.
import assert from "node:assert/strict";
import { closeSync, mkdirSync, openSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { all, byTwo, filled, holding, mount, refused, service } from "./world.mjs";

const share = service.getShareClient("share");
const root = share.rootDirectoryClient;

export async function besideTheMount() {
  await sharing();
  await handlesOfFiles();
  await handlesOfDirectories();
  await deletePending();
}

async function sharing() {
  const file = await filled(share, "held.txt", "data");
  assert.equal(readFileSync(join(mount, "held.txt"), "utf8"), "data");
  await holding("held.txt", ["--access", "rw", "--share", "none"], async (handle) => {
    const told = await refused(409, "SharingViolation", () => file.download());
    assert.ok(told.includes(`handle ${handle}`), told);
    await refused(409, "SharingViolation", () => file.uploadRange("x", 0, 1));
    await refused(409, "SharingViolation", () => file.setMetadata({ a: "b" }));
    await refused(409, "SharingViolation", () => file.resize(1));
    await refused(409, "SharingViolation", () => file.delete());
    await refused(409, "SharingViolation", () => file.rename("elsewhere.txt"));
    await refused(409, "SharingViolation", () => file.getShareLeaseClient().acquireLease());
    assert.equal((await file.getProperties()).contentLength, 4);
  });
  await holding("held.txt", ["--access", "w", "--share", "r"], async () => {
    assert.equal(String(await file.downloadToBuffer()), "data");
    await refused(409, "SharingViolation", () => file.uploadRange("x", 0, 1));
  });
  await file.delete();
}

async function handlesOfFiles() {
  const file = await filled(share, "open.txt", "data");
  await holding("open.txt", ["--access", "rw", "--share", "none"], async (handle) => {
    const [shown] = await all(file.listHandles());
    assert.deepEqual([shown.handleId, shown.path], [String(handle), "open.txt"]);
    assert.deepEqual([...shown.accessRightList].sort(), ["Read", "Write"]);
    const closed = await file.forceCloseHandle(shown.handleId);
    assert.deepEqual([closed.closedHandlesCount, closed.closeFailureCount], [1, 0]);
    assert.equal(String(await file.downloadToBuffer()), "data");
    assert.equal((await file.forceCloseHandle(shown.handleId)).closedHandlesCount, 0);
  });
  const descriptors = [1, 2, 3].map(() => openSync(join(mount, "open.txt"), "r+"));
  // The SDK forgets the page size here; directories below have theirs.
  const { value: page } = await file.listHandles().byPage().next();
  assert.equal(new Set(page.handleList.map((shown) => shown.handleId)).size, 3);
  assert.equal((await file.forceCloseAllHandles()).closedHandlesCount, 3);
  assert.deepEqual(await all(file.listHandles()), []);
  for (const descriptor of descriptors) {
    assert.throws(() => closeSync(descriptor), { code: "EIO" });
  }
  const none = root.getFileClient("none");
  await refused(404, "ResourceNotFound", () => all(none.listHandles()));
  await refused(404, "ResourceNotFound", () => none.forceCloseHandle("1"));
  await refused(404, "ResourceNotFound", () => none.forceCloseAllHandles());
  await file.delete();
}

async function handlesOfDirectories() {
  mkdirSync(join(mount, "Dir/sub"), { recursive: true });
  const paths = ["Dir/a", "Dir/b", "Dir/sub/c"];
  paths.forEach((path) => writeFileSync(join(mount, path), path));
  const open = () => paths.map((path) => openSync(join(mount, path), "r"));
  const directory = root.getDirectoryClient("Dir");
  const first = open();
  const list = () => directory.listHandles({ recursive: true });
  const paged = await byTwo(list, (page) => page.handleList ?? []);
  assert.deepEqual(paged.map((shown) => shown.path).sort(), paths);
  assert.deepEqual(await all(directory.listHandles()), []);
  const { handleId } = paged.find((shown) => shown.path === "Dir/sub/c");
  const below = directory.getDirectoryClient("sub");
  assert.equal((await below.forceCloseHandle(handleId, { recursive: true })).closedHandlesCount, 1);
  assert.equal((await directory.forceCloseAllHandles({ recursive: true })).closedHandlesCount, 2);
  first.forEach(closeSync);
  const none = root.getDirectoryClient("none");
  await refused(404, "ResourceNotFound", () => all(none.listHandles()));
  await refused(404, "ResourceNotFound", () => none.forceCloseHandle("1"));
  await refused(404, "ResourceNotFound", () => none.forceCloseAllHandles());
}

async function deletePending() {
  const file = await filled(share, "pending.txt", "data");
  const descriptor = openSync(join(mount, "pending.txt"), "r+");
  unlinkSync(join(mount, "pending.txt"));
  await refused(409, "SMBDeletePending", () => file.getProperties());
  await refused(409, "SMBDeletePending", () => file.create(1));
  const names = (await all(root.listFilesAndDirectories())).map((item) => item.name);
  assert.ok(!names.includes("pending.txt"));
  closeSync(descriptor);
  await refused(404, "ResourceNotFound", () => file.getProperties());
}
