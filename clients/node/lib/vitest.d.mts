import type { TestAPI } from "vitest";

import type { Server, StartOptions } from "./index.js";

/** What tests get: `test("...", async ({ latchfs }) => { ... })`. */
export interface LatchfsFixtures {
  /** A server that is empty at the start of the test. */
  latchfs: Server;
  /** The same server, which the tests of one file share. */
  latchfsServer: Server;
}

/** `test` of vitest whose tests get a server that was started with these options. */
export function latchfsTest(options?: StartOptions): TestAPI<LatchfsFixtures>;

/** `latchfsTest()`. */
export const test: TestAPI<LatchfsFixtures>;
