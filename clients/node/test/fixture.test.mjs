// The fixture of node:test: each test finds the server empty.

import assert from "node:assert/strict";
import { test } from "node:test";

import { useLatchfs } from "latchfs/node-test";

const latchfs = useLatchfs();
assert.throws(() => latchfs.share, /inside tests only/);

for (const round of [1, 2, 3]) {
  test(`round ${round} finds no file, and leaves one`, async () => {
    const before = await latchfs.file("a.txt");
    assert.equal(await before.exists(), false);
    const file = await latchfs.put("a.txt", "x");
    await latchfs.hold("a.txt", { share: "none" });
    await assert.rejects(file.download(), { code: "SharingViolation" });
  });
}
