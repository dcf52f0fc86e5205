// `test` of vitest with a server: each file of tests starts its own, each test finds it empty.

import { test as base } from "vitest";

import { startOrConnect, storyOf } from "./fixture.js";

/** `test` of vitest whose tests get a server that was started with these options. */
export function latchfsTest(options = {}) {
  return base.extend({
    latchfsServer: [
      // vitest reads the names of other fixtures from the pattern of the first argument.
      async ({}, use) => {
        const { server, end } = await startOrConnect(options);
        await use(server);
        await end();
      },
      { scope: "file" },
    ],
    latchfs: async ({ latchfsServer, task, onTestFailed }, use) => {
      const mark = await latchfsServer.mark(task.name);
      onTestFailed(async () => {
        for (const line of await storyOf(latchfsServer, mark, task.name)) console.error(line);
      });
      await use(latchfsServer);
      await latchfsServer.reset();
    },
  });
}

export const test = latchfsTest();
