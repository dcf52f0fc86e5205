// What a test controls: holds, gates, faults, the clock and saved states.

const { given } = require("./api.js");
const { LatchfsError } = require("./errors.js");

const name = encodeURIComponent;

/** Refuses options that a call does not have: a misspelt one would be ignored. */
function refuseOthers(call, others, known) {
  const [unknown] = Object.keys(others);
  if (unknown === undefined) return;
  throw new LatchfsError(`${call}: there is no option '${unknown}', only ${known}`);
}

/** Does something that may be done already: true unless the server knows nothing of it. */
async function unlessGone(action) {
  try {
    return await action();
  } catch (error) {
    if (error.status === 404) return undefined;
    throw error;
  }
}

/** A file that the server holds open, as a program of another machine would. */
class Hold {
  #api;
  #close;
  #holds;

  constructor(api, { granted, close }, holds) {
    this.#api = api;
    this.#close = close;
    this.#holds = holds.add(this);
    this.handle = granted.handle;
    this.account = granted.account;
    this.share = granted.share;
    this.path = granted.path;
    this.access = granted.access;
    this.shareMode = granted.share_mode;
  }

  static async open(api, body, holds) {
    return new Hold(api, await api.holdStream("/holds", { ...body, while_connected: true }), holds);
  }

  async release() {
    if (this.#close === undefined) return false;
    try {
      const answer = await unlessGone(() => this.#api.delete(`/holds/${name(this.handle)}`));
      return answer?.open ?? false;
    } finally {
      this.letGo();
    }
  }

  /** Closes the connection, which ends the hold if nothing else has. */
  letGo() {
    this.#holds.delete(this);
    this.#close?.();
    this.#close = undefined;
  }

  async [Symbol.asyncDispose]() {
    await this.release();
  }
}

/** A point where requests stop until the test lets them go. */
class Gate {
  #api;

  constructor(api, id) {
    this.#api = api;
    this.id = id;
  }

  static async add(api, body) {
    return new Gate(api, (await api.post("/gates", body)).gate);
  }

  async wait(count = 1, options = {}) {
    if (typeof count === "object") return this.wait(1, count);
    if (typeof options !== "object") {
      throw new LatchfsError(`wait: expected options, as in { timeout: ${options} }`);
    }
    const { timeout = 30_000, ...others } = options;
    refuseOthers("wait", others, "timeout");
    const query = { count, timeout_ms: timeout };
    const patience = { timeout: timeout + 30_000 };
    return (await this.#api.get(`/gates/${this.id}/wait`, query, patience)).waiting;
  }

  async release(count) {
    return (await this.#api.post(`/gates/${this.id}/release`, given({ count }))).released;
  }

  status() {
    return this.#api.get(`/gates/${this.id}`);
  }

  async remove() {
    await unlessGone(() => this.#api.delete(`/gates/${this.id}`));
  }

  async [Symbol.asyncDispose]() {
    await this.remove();
  }
}

/** A fault that is injected into the requests that match. */
class Fault {
  #api;

  constructor(api, id) {
    this.#api = api;
    this.id = id;
  }

  static async add(api, body) {
    return new Fault(api, (await api.post("/faults", body)).fault);
  }

  async met() {
    const { faults } = await this.#api.get("/faults");
    return faults.find((row) => row.id === this.id)?.met ?? 0;
  }

  async remove() {
    await unlessGone(() => this.#api.delete(`/faults/${this.id}`));
  }

  async [Symbol.asyncDispose]() {
    await this.remove();
  }
}

/** The clock of the server. */
class Clock {
  #api;

  constructor(api) {
    this.#api = api;
  }

  async now() {
    return new Date((await this.#api.get("/clock")).now);
  }

  async frozen() {
    return (await this.#api.get("/clock")).frozen;
  }

  async #turn(body) {
    return new Date((await this.#api.post("/clock", body)).now);
  }

  async advance(milliseconds) {
    if (typeof milliseconds !== "number") {
      throw new LatchfsError(`clock.advance: expected milliseconds, a number, not '${milliseconds}'`);
    }
    return this.#turn({ advance_ms: milliseconds });
  }

  async set(moment) {
    // Not `instanceof`: test runners have a Date of their own in each context.
    if (Number.isNaN(moment?.getTime?.() ?? NaN)) {
      throw new LatchfsError(`clock.set: expected a Date, not '${moment}'`);
    }
    return this.#turn({ set: moment.toISOString() });
  }

  freeze() {
    return this.#turn({ freeze: true });
  }

  run() {
    return this.#turn({ run: true });
  }
}

/** Saved states of all services. */
class States {
  #api;

  constructor(api) {
    this.#api = api;
  }

  async save(state) {
    await this.#api.put(`/states/${name(state)}`);
  }

  async restore(state) {
    await this.#api.post(`/states/${name(state)}/restore`);
  }

  async delete(state) {
    await this.#api.delete(`/states/${name(state)}`);
  }

  async list() {
    return (await this.#api.get("/states")).states.map((row) => row.name);
  }
}

module.exports = { Clock, Fault, Gate, Hold, refuseOthers, States };
