// Plays a round, and holds the table of methods against the SDK and against what was called.
import assert from "node:assert/strict";

import { recorded } from "./recorder.mjs";

/** Plays the parts of a round. Fails with every gap between the SDK's methods, a table of them and
 * what was called, one a line. `unsupported` has the reason for each that never succeeds. */
export async function play({ present }, table, unsupported, parts) {
  for (const part of parts) {
    await part();
  }
  const gaps = [
    ...unlisted(present, table),
    ...gone(present, table),
    ...uncalled(table),
    ...unexplained(table, unsupported),
  ];
  assert.equal(gaps.length, 0, `${gaps.length} gap(s):\n${gaps.join("\n")}`);
  console.log(`met ${Object.values(table).flatMap(Object.keys).length} methods`);
  // A download that a part left unread would keep its connection, and this program, for two minutes.
  process.exit();
}

function* unlisted(present, table) {
  for (const [type, methods] of Object.entries(present)) {
    for (const method of methods.filter((method) => !table[type]?.[method])) {
      yield `${type}.${method}: the SDK has it, the table does not`;
    }
  }
}

function* gone(present, table) {
  for (const [type, methods] of Object.entries(table)) {
    for (const method of Object.keys(methods).filter((name) => !present[type]?.includes(name))) {
      yield `${type}.${method}: the table has it, the SDK does not`;
    }
  }
}

function* uncalled(table) {
  for (const [type, methods] of Object.entries(table)) {
    for (const [method, wanted] of Object.entries(methods)) {
      const seen = recorded().get(`${type}.${method}`) ?? new Set();
      for (const outcome of wanted.filter((outcome) => !seen.has(outcome))) {
        yield `${type}.${method}: the round has no ${outcome} case`;
      }
    }
  }
}

/** What never succeeds has a reason, and nothing else has one. */
function* unexplained(table, unsupported) {
  for (const [type, methods] of Object.entries(table)) {
    for (const [method, wanted] of Object.entries(methods)) {
      const label = `${type}.${method}`;
      const never = !wanted.includes("good");
      if (never !== label in unsupported) {
        yield `${label}: the list of the unsupported must name what never succeeds, and that alone`;
      }
      if (never && recorded().get(label)?.has("good")) {
        yield `${label}: it succeeded, though it is listed as unsupported`;
      }
    }
  }
}
