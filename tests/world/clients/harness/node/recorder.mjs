// Records how each public method of the SDK was called: with success, with which refusal, or not.
//
// Methods are wrapped where they live, on the prototypes. A call that the SDK makes inside
// another does not count: only what the round itself calls was looked at.
import { AsyncLocalStorage } from "node:async_hooks";

import { FUNCTIONS } from "./sdk.mjs";

const inside = new AsyncLocalStorage();
const outcomes = new Map();

/** The functions of the SDK that belong to no class, recorded too. */
export const functions = {};

/** `Class.method` to the set of outcomes seen: "good", "bad", and the code of each refusal. */
export function recorded() {
  return outcomes;
}

/** Wraps everything of an SDK. To be called once, before the first client is made. */
export function record({ sdk, present }) {
  for (const [type, methods] of Object.entries(present)) {
    for (const method of methods) {
      const label = `${type}.${method}`;
      if (type === FUNCTIONS) {
        functions[method] = wrapped(label, sdk[method]);
      } else {
        wrapMember(sdk[type], method, label);
      }
    }
  }
}

function wrapMember(type, method, label) {
  const home = Object.hasOwn(type.prototype, method) ? type.prototype : type;
  const member = Object.getOwnPropertyDescriptor(home, method);
  const key = member.get ? "get" : "value";
  Object.defineProperty(home, method, { ...member, [key]: wrapped(label, member[key]) });
}

function wrapped(label, call) {
  return function (...given) {
    if (inside.getStore()) {
      return call.apply(this, given);
    }
    return noted(label, () => call.apply(this, given));
  };
}

/** Calls, and notes how it went: now, when a promise settles, or page by page. */
function noted(label, call) {
  let result;
  try {
    result = inside.run(true, call);
  } catch (error) {
    noteBad(label, error);
    throw error;
  }
  if (typeof result?.then === "function") {
    return result.then(
      (value) => {
        note(label, "good");
        return value;
      },
      (error) => {
        noteBad(label, error);
        throw error;
      },
    );
  }
  if (typeof result?.byPage === "function") {
    return notedPages(label, result);
  }
  note(label, "good");
  return result;
}

/** A list asks for nothing until it is walked. */
function notedPages(label, list) {
  const walk = (iterator) => {
    const next = iterator.next.bind(iterator);
    iterator.next = () => noted(label, next);
    return iterator;
  };
  const byPage = list.byPage;
  return Object.assign(walk(list), { byPage: (settings) => walk(byPage(settings)) });
}

function note(label, outcome) {
  outcomes.set(label, (outcomes.get(label) ?? new Set()).add(outcome));
}

function noteBad(label, error) {
  note(label, "bad");
  note(label, codeOf(error));
}

/** The code of a refusal. The answer to a HEAD has no body: its code is in a header alone. */
export function codeOf({ code, details, response }) {
  const told = details?.odataError?.code ?? code ?? details?.errorCode;
  return told ?? response?.headers?.get("x-ms-error-code");
}

/** A case that cannot come about on this machine. */
export function excuse(label, outcome, why) {
  console.log(`SKIPPED the ${outcome} case of ${label}: ${why}`);
  note(label, outcome);
}
