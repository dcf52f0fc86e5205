// Puts the server into the package, before `npm pack`: the program that LATCHFS_BINARY names, or the
// release build of the repository around this directory.

import { chmodSync, copyFileSync, existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = join(dirname(fileURLToPath(import.meta.url)), "..");
const source = process.env.LATCHFS_BINARY ?? join(here, "../../target/dist/latchfs");
if (!existsSync(source)) {
  console.error(`latchfs: ${source} does not exist: run \`cargo build --profile dist\` first`);
  process.exit(1);
}
const target = join(here, "bin/latchfs");
mkdirSync(dirname(target), { recursive: true });
copyFileSync(source, target);
chmodSync(target, 0o755);
console.error(`latchfs: ${target}, ${(statSync(target).size / 1e6).toFixed(1)} MB`);
