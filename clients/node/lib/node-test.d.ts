import type { Server, StartOptions } from "./index.js";

/**
 * Starts a server before the tests of this file or suite, makes it empty after each test and stops
 * it at the end. With the variable LATCHFS_URL that server is used instead.
 */
export function useLatchfs(options?: StartOptions): Server;
