// Holds the table of methods against the SDK, and the round against the table.
import assert from "node:assert/strict";

import { METHODS, UNSUPPORTED } from "./methods.mjs";
import { recorded } from "./recorder.mjs";
import { publicMethods } from "./sdk.mjs";

/** Fails with every gap, one a line. */
export function check() {
  const gaps = [...unlisted(), ...gone(), ...uncalled(), ...unexplained()];
  assert.equal(gaps.length, 0, `${gaps.length} gap(s):\n${gaps.join("\n")}`);
  return Object.values(METHODS).flatMap(Object.keys).length;
}

function* unlisted() {
  for (const [type, methods] of Object.entries(publicMethods())) {
    for (const method of methods.filter((method) => !METHODS[type]?.[method])) {
      yield `${type}.${method}: the SDK has it, methods.mjs does not`;
    }
  }
}

function* gone() {
  const present = publicMethods();
  for (const [type, methods] of Object.entries(METHODS)) {
    for (const method of Object.keys(methods).filter((name) => !present[type]?.includes(name))) {
      yield `${type}.${method}: methods.mjs has it, the SDK does not`;
    }
  }
}

function* uncalled() {
  for (const [type, methods] of Object.entries(METHODS)) {
    for (const [method, wanted] of Object.entries(methods)) {
      const seen = recorded().get(`${type}.${method}`) ?? new Set();
      for (const outcome of wanted.filter((outcome) => !seen.has(outcome))) {
        yield `${type}.${method}: the round has no ${outcome} case`;
      }
    }
  }
}

/** What never succeeds has a reason, and nothing else has one. */
function* unexplained() {
  for (const [type, methods] of Object.entries(METHODS)) {
    for (const [method, wanted] of Object.entries(methods)) {
      const label = `${type}.${method}`;
      const never = !wanted.includes("good");
      if (never !== label in UNSUPPORTED) {
        yield `${label}: UNSUPPORTED must name what never succeeds, and that alone`;
      }
      if (never && recorded().get(label)?.has("good")) {
        yield `${label}: it succeeded, though UNSUPPORTED says it cannot`;
      }
    }
  }
}
