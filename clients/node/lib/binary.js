// Finds the program that this package carries.

const { accessSync, constants, statSync } = require("node:fs");
const { delimiter, join } = require("node:path");

const { StartError } = require("./errors.js");

/** The path of the program: LATCHFS_BINARY, the one of this package, or one on the PATH. */
function binary() {
  const named = process.env.LATCHFS_BINARY;
  if (named) {
    if (!isProgram(named)) throw new StartError(`LATCHFS_BINARY=${named}: no program there`);
    return named;
  }
  const own = join(__dirname, "../bin/latchfs");
  const onPath = (process.env.PATH ?? "").split(delimiter).map((dir) => join(dir, "latchfs"));
  const found = [own, ...onPath].find(isProgram);
  if (found === undefined) {
    throw new StartError(
      "the program latchfs was not found: install the package as `npm pack` makes it, or name " +
        "the program in LATCHFS_BINARY",
    );
  }
  return found;
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

module.exports = { binary };
