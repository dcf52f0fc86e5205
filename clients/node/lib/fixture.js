// The server of one test file: started for its first test, made empty after each, stopped at the end.

const { randomUUID } = require("node:crypto");

const { tell } = require("./report.js");
const { Server } = require("./server.js");
const { finding, lastRun } = require("./story.js");

/** Starts a server, or uses the one that LATCHFS_URL names. `end` says what its report has. */
async function startOrConnect(options) {
  const url = process.env.LATCHFS_URL;
  if (!url) {
    const server = await Server.start(options);
    return { server, end: () => ended(server) };
  }
  const token = process.env.LATCHFS_TOKEN;
  // The reset also removes shares that an earlier run made and left.
  await (await Server.connect(url, { token })).reset();
  const server = await Server.connect(url, { token, share: options?.shares?.[0] });
  const since = `a file of tests, ${randomUUID()}`;
  await server.mark(since);
  return { server, end: () => ended(server, since) };
}

async function ended(server, since) {
  try {
    await tell(server, since);
  } finally {
    await server.close();
  }
}

/** The lines of the story of a test that failed, or why there is none. */
async function storyOf(server, mark, name) {
  try {
    const run = lastRun(await server.events({ after: mark, kind: "mark" }));
    const lines = await server.story(run?.seq ?? mark);
    const { findings } = await server.report({ since: run?.detail ?? name, level: "warn" });
    lines.push(...findings.map((one) => `report: ${finding(one)}`));
    return lines.length > 0 ? ["latchfs: the last requests of the test", ...lines] : [];
  } catch (error) {
    return [`latchfs: the server does not answer: ${error.message}`];
  }
}

module.exports = { startOrConnect, storyOf };
