// `require` in a runner that compiles modules by itself, as jest does: modules that are required must
// be CommonJS, and `import()` inside of them fails.

const assert = require("node:assert/strict");
const Module = require("node:module");
const { dirname } = require("node:path");
const { test } = require("node:test");
const vm = require("node:vm");

const compiled = [];
Module.prototype._compile = function (code, path) {
  compiled.push(path);
  const wrapped = vm.runInThisContext(Module.wrap(code), { filename: path });
  wrapped.call(this.exports, this.exports, (id) => this.require(id), this, path, dirname(path));
};

test("a server is used", async () => {
  const { Server } = require("latchfs");
  assert.ok(compiled.includes(require.resolve("latchfs")), "it is no ES module");
  const server = await Server.start();
  try {
    const file = await server.put("a.txt", "x");
    await server.holding("a.txt", { share: "none" }, () =>
      assert.rejects(file.download(), { code: "SharingViolation" }));
    assert.equal((await file.downloadToBuffer()).toString(), "x");
    assert.ok(compiled.includes(require.resolve("@azure/storage-file-share")));
  } finally {
    await server.close();
  }
});
