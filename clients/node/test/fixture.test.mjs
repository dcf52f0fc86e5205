// The fixture of node:test: each test finds the server empty.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
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

test("a failed test tells its story, with the names of clients", async () => {
  const program = `
    const { test } = require("node:test");
    const { useLatchfs } = require("latchfs/node-test");
    const latchfs = useLatchfs();
    const get = (name) =>
      fetch(latchfs.endpoints.blob + "/box/" + name, { headers: { "x-latchfs-client": "A" } });
    test("before", () => get("of-another-test"));
    test("fails", async () => {
      await get("a");
      throw new Error("on purpose");
    });`;
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const run = spawnSync(process.execPath, ["--test-reporter=tap", "-e", program], { encoding: "utf8", env });
  assert.match(run.stdout, /# latchfs: the last requests of the test\n# A: Get Blob blob:box\/a -> 401/, run.stderr);
  assert.doesNotMatch(run.stdout, /of-another-test/);
});

test("the story of an explored test is that of the failing run", async () => {
  const program = `
    const { test } = require("node:test");
    const { useLatchfs } = require("latchfs/node-test");
    const latchfs = useLatchfs({ args: ["--no-auth"] });
    const get = (client) => async () => {
      const headers = { "x-latchfs-client": client, "x-ms-version": "2026-10-06" };
      await (await fetch(latchfs.endpoints.blob + "/box/a", { headers })).text();
    };
    test("fails in each order", () =>
      latchfs.explore(async (run) => {
        await run.clients({ A: get("A"), B: get("B") });
        throw new Error("on purpose");
      }));`;
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const run = spawnSync(process.execPath, ["--test-reporter=tap", "-e", program], { encoding: "utf8", env });
  const story = run.stdout.match(/^# [AB]: Get Blob blob:box\/a -> 404.*$/gm);
  assert.equal(story?.length, 2, run.stdout);
});

test("the report is told at the end, and fails the tests where it is to", async () => {
  const program = `
    const { test } = require("node:test");
    const { useLatchfs } = require("latchfs/node-test");
    const latchfs = useLatchfs({ args: ["--no-auth"] });
    const ask = async (client, method, path, body) => {
      const headers = { "x-latchfs-client": client, "x-ms-version": "2026-10-06", "x-ms-blob-type": "BlockBlob" };
      const answer = await fetch(latchfs.endpoints.blob + path, { method, headers, body });
      return answer.text();
    };
    test("race", async () => {
      await ask("A", "PUT", "/box?restype=container");
      await ask("A", "PUT", "/box/a", "0");
      await ask("A", "GET", "/box/a");
      await ask("B", "PUT", "/box/a", "1");
      await ask("A", "PUT", "/box/a", "2");
    });`;
  const { NODE_TEST_CONTEXT, ...others } = process.env;
  for (const [level, status] of [["summary", 0], ["error", 1], ["bad", 1]]) {
    const env = { ...others, LATCHFS_REPORT: level };
    const run = spawnSync(process.execPath, ["--test-reporter=tap", "-e", program], { encoding: "utf8", env });
    assert.equal(run.status, status, run.stdout);
    const told = /error: lost-update of blob:box\/a, in race: A read it, B changed it/;
    (level === "bad" ? assert.doesNotMatch : assert.match)(run.stdout, told);
  }
});

test("a client has one connection string, with a key of its own", async () => {
  const string = await latchfs.client("A");
  assert.equal(await latchfs.client("A"), string);
  assert.notEqual(string, latchfs.connectionString);
  await assert.rejects(latchfs.client("a b"), /is not the name of a client/);
});
