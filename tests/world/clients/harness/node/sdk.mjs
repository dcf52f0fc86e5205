// The SDK of a round, from where tests/run installs it, and what it declares: each public method of
// its clients by class, and the functions that make signatures.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const require = createRequire(new URL("../../../../.cache/node/package.json", import.meta.url));

/** The class of the errors of the SDK. */
export let RestError;
/** The name under which functions stand that belong to no class. */
export const FUNCTIONS = "functions";
/** The round sees a method succeed, and sees it refused. */
export const BOTH = ["good", "bad"];
/** A method asks nobody and cannot fail. */
export const LOCAL = ["good"];
/** A method cannot succeed: UNSUPPORTED has the reason. */
export const NEVER = ["bad"];

/** The SDK of a package. `classes`: those whose methods a round must call, and the file that
 * declares each. */
export function load(name, classes) {
  const sdk = require(name);
  ({ RestError } = sdk);
  return { sdk, present: publicMethods(sdk, dirname(require.resolve(name)), classes) };
}

/** Class by class, the names that users may call. */
function publicMethods(sdk, folder, classes) {
  const found = {};
  for (const [name, file] of Object.entries(classes)) {
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
  const line = /^ {4}(?:static |get )?([A-Za-z]\w*)[(<]/gm;
  return new Set([...body.matchAll(line)].map((match) => match[1]));
}
