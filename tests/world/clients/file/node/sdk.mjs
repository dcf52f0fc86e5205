// The SDK, from where tests/run installs it, and what it declares: each public method of its
// clients by class, and the functions that make signatures.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const PACKAGE = "@azure/storage-file-share";
const require = createRequire(new URL("../../../../.cache/node/package.json", import.meta.url));

export const sdk = require(PACKAGE);

/** The classes whose methods a round must call, and the file that declares each. */
const CLASSES = {
  ShareServiceClient: "ShareServiceClient.d.ts",
  ShareClient: "Clients.d.ts",
  ShareDirectoryClient: "Clients.d.ts",
  ShareFileClient: "Clients.d.ts",
  ShareLeaseClient: "Clients.d.ts",
};

/** The name under which functions stand that belong to no class. */
export const FUNCTIONS = "functions";

/** Class by class, the names that users may call. */
export function publicMethods() {
  const folder = dirname(require.resolve(PACKAGE));
  const found = {};
  for (const [name, file] of Object.entries(CLASSES)) {
    const declared = declaredIn(readFileSync(join(folder, file), "utf8"), name);
    found[name] = membersOf(sdk[name]).filter((member) => declared.has(member));
  }
  found[FUNCTIONS] = Object.keys(sdk).filter((name) => name.startsWith("generate"));
  return found;
}

/** Methods and getters of a class as it runs, private ones too. */
function membersOf(type) {
  const own = Object.getOwnPropertyNames(type.prototype);
  const statics = Object.getOwnPropertyNames(type).filter(
    (name) => typeof type[name] === "function",
  );
  return [...own, ...statics].filter((name) => name !== "constructor" && !name.startsWith("_"));
}

/** The members that a class declares as public: private ones are declared by name alone. */
function declaredIn(text, name) {
  const start = text.indexOf(`export declare class ${name} `);
  const body = text.slice(start, text.indexOf("\n}", start));
  const line = /^ {4}(?:static |get )?([A-Za-z]\w*)\(/gm;
  return new Set([...body.matchAll(line)].map((match) => match[1]));
}
