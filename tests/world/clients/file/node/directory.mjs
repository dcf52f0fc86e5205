// ShareDirectoryClient: what a directory is called, holds and is told of itself.
// Handles are in mount.mjs, where there are some.
import assert from "node:assert/strict";

import { all, byTwo, refused, sdk, service, stranger } from "./world.mjs";

const WHEN = new Date("2020-02-02T02:02:02.000Z");

export async function directoryClient() {
  const { shareClient: share } = await service.createShare("directories");
  const directory = share.getDirectoryClient("Top");
  await creation(share, directory);
  await properties(directory);
  await children(directory);
  await listing(directory);
  await renames(share, directory);
  await deletion(share, directory);
}

async function creation(share, directory) {
  assert.deepEqual(
    [directory.shareName, directory.path, directory.name],
    ["directories", "Top", "Top"],
  );
  const made = await directory.create({ metadata: { a: "1" } });
  assert.ok(made.fileId && made.etag && made.fileAttributes === "Directory");
  await refused(409, "ResourceAlreadyExists", () => directory.create());
  assert.equal((await directory.createIfNotExists()).succeeded, false);
  const below = directory.getDirectoryClient("below");
  assert.equal(below.path, "Top/below");
  assert.equal((await below.createIfNotExists()).succeeded, true);
  const lost = share.getDirectoryClient("no/such");
  await refused(404, "ParentNotFound", () => lost.createIfNotExists());
  assert.deepEqual([await below.exists(), await lost.exists()], [true, false]);
  const unknown = stranger.getShareClient("directories").getDirectoryClient("Top");
  await refused(403, "AuthenticationFailed", () => unknown.exists());
}

async function properties(directory) {
  const none = directory.getDirectoryClient("none");
  await directory.setProperties({
    creationTime: WHEN,
    lastWriteTime: WHEN,
    fileAttributes: sdk.FileSystemAttributes.parse("Directory|Hidden"),
  });
  const shown = await directory.getProperties();
  assert.deepEqual([shown.fileCreatedOn, shown.fileLastWriteOn], [WHEN, WHEN]);
  assert.deepEqual(
    shown.fileAttributes
      .split("|")
      .map((word) => word.trim())
      .sort(),
    ["Directory", "Hidden"],
  );
  assert.deepEqual(shown.metadata, { a: "1" });
  await refused(404, "ResourceNotFound", () => none.setProperties({ creationTime: WHEN }));
  await refused(404, "ResourceNotFound", () => none.getProperties());
  await directory.setMetadata({ b: "2" });
  assert.deepEqual((await directory.getProperties()).metadata, { b: "2" });
  await refused(404, "ResourceNotFound", () => none.setMetadata({ b: "2" }));
}

async function children(directory) {
  const { directoryClient: sub } = await directory.createSubdirectory("sub");
  await refused(409, "ResourceAlreadyExists", () => directory.createSubdirectory("SUB"));
  const { fileClient: file } = await sub.createFile("one.bin", 11);
  assert.equal(file.path, "Top/sub/one.bin");
  await refused(404, "ParentNotFound", () =>
    directory.getDirectoryClient("none").createFile("x", 1),
  );
  assert.equal((await sub.getFileClient("ONE.bin").getProperties()).contentLength, 11);
  await refused(409, "DirectoryNotEmpty", () => directory.deleteSubdirectory("sub"));
  await sub.deleteFile("one.bin");
  await refused(404, "ResourceNotFound", () => sub.deleteFile("one.bin"));
  await directory.deleteSubdirectory("sub");
}

async function listing(directory) {
  const names = ["%41 & b", "a+b", "b.txt", "c#1!", "ünï"];
  for (const name of names) {
    await directory.createFile(name, 6);
  }
  const list = (options) => directory.listFilesAndDirectories(options);
  const nameOf = (item) => item.name;
  const found = await all(list());
  assert.deepEqual(found.map(nameOf).sort(), [...names, "below"].sort());
  assert.ok(
    found.every(({ kind, properties }) => kind === "directory" || properties.contentLength === 6),
  );
  const itemsOf = ({ segment }) => [...segment.directoryItems, ...segment.fileItems];
  const paged = await byTwo(list, itemsOf);
  assert.deepEqual(paged.map(nameOf).sort(), [...names, "below"].sort());
  const chosen = await all(list({ prefix: "B" }));
  assert.deepEqual(chosen.map(nameOf).sort(), ["b.txt", "below"]);
  const [full] = await all(
    list({
      prefix: "b.t",
      includeTimestamps: true,
      includeEtag: true,
      includeAttributes: true,
      includePermissionKey: true,
      includeExtendedInfo: true,
    }),
  );
  const shown = await directory.getFileClient("b.txt").getProperties();
  assert.deepEqual(
    [full.properties.etag, full.fileId, full.attributes],
    [shown.etag, shown.fileId, "Archive"],
  );
  assert.deepEqual(full.properties.lastWriteTime, shown.fileLastWriteOn);
  await refused(404, "ResourceNotFound", () =>
    all(directory.getDirectoryClient("none").listFilesAndDirectories()),
  );
  await refused(400, "InvalidContinuationToken", () =>
    list().byPage({ continuationToken: "!" }).next(),
  );
}

async function renames(share, directory) {
  const { directoryClient: from } = await directory.createSubdirectory("from");
  await from.createFile("inside.txt", 2);
  const { destinationDirectoryClient: to } = await from.rename("Top/to é", {
    metadata: { moved: "yes" },
  });
  assert.deepEqual((await to.getProperties()).metadata, { moved: "yes" });
  const there = share.getDirectoryClient("Top/to é");
  assert.equal(await there.getFileClient("inside.txt").exists(), true);
  assert.equal(await from.exists(), false);
  await refused(404, "ResourceNotFound", () => from.rename("Top/again"));
  await refused(409, "ResourceAlreadyExists", () => there.rename("Top/below"));
}

async function deletion(share, directory) {
  await refused(409, "DirectoryNotEmpty", () => directory.delete());
  await refused(409, "DirectoryNotEmpty", () => directory.deleteIfExists());
  const below = directory.getDirectoryClient("below");
  await below.delete();
  assert.equal((await below.deleteIfExists()).succeeded, false);
  const { directoryClient: last } = await share.createDirectory("last");
  assert.equal((await last.deleteIfExists()).succeeded, true);
}
