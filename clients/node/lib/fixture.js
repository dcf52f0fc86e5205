// The server of one test file: started for its first test, made empty after each, stopped at the end.

const { Server } = require("./server.js");

/** Starts a server, or uses the one that LATCHFS_URL names. */
async function startOrConnect(options) {
  const url = process.env.LATCHFS_URL;
  if (!url) return Server.start(options);
  const token = process.env.LATCHFS_TOKEN;
  // The reset also removes shares that an earlier run made and left.
  await (await Server.connect(url, { token })).reset();
  return Server.connect(url, { token, share: options?.shares?.[0] });
}

/** The lines of the story of a test that failed, or why there is none. */
async function storyOf(server, mark) {
  try {
    const lines = await server.story(mark);
    return lines.length > 0 ? ["latchfs: the last requests of the test", ...lines] : [];
  } catch (error) {
    return [`latchfs: the server does not answer: ${error.message}`];
  }
}

module.exports = { startOrConnect, storyOf };
