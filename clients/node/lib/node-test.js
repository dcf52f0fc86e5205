// A server for the tests of one file, for `node --test`.

const { after, afterEach, before, beforeEach } = require("node:test");

const { startOrConnect, storyOf } = require("./fixture.js");

/**
 * Starts a server before the tests of this file or suite, and makes it empty after each test. A test
 * that fails tells its story.
 */
function useLatchfs(options) {
  let server, end, mark;
  before(async () => {
    ({ server, end } = await startOrConnect(options));
  });
  const nameOf = (context) => context.fullName ?? context.name;
  beforeEach(async (context) => {
    mark = await server.mark(nameOf(context));
  });
  afterEach(async (context) => {
    // `error` is there once the test has failed.
    if (context.error) {
      for (const line of await storyOf(server, mark, nameOf(context))) context.diagnostic(line);
    }
    await server?.reset();
  });
  after(() => end?.());
  // What the tests use is the server itself, which exists when the first of them runs.
  return new Proxy(
    {},
    {
      get(_, member) {
        if (server === undefined) throw new Error("latchfs: the server is there inside tests only");
        const value = server[member];
        return typeof value === "function" ? value.bind(server) : value;
      },
    },
  );
}

module.exports = { useLatchfs };
