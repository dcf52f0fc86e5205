// Finds races: runs a test under every order of its clients' requests that matters.
//
// Here, the loop of runs and what is told of a failure. Which order comes next is decided in the
// server.

const { readFile, readdir } = require("node:fs/promises");

const { given } = require("./api.js");
const { refuseOthers } = require("./controls.js");
const { ExploreError, RaceFound, Stuck } = require("./errors.js");

/** The saved state that each run starts from: what the server has when the search begins. */
const STATE = "latchfs-explore";
/** The clients that a test has, until its first run shows others. */
const CLIENTS = ["A", "B"];
/** How long a search waits for the next call of its test, which may compute between two of them. */
const PATIENCE_MS = 600_000;
/** How long one look at a run waits for its end, and how long the clients of one run may take. */
const LOOK_MS = 500;
const RUN_MS = 120_000;

/** The test has other clients than those of the search, which begins again with these. */
class OtherClients extends Error {
  constructor(names) {
    super(`clients ${names}`);
    this.names = names;
  }
}

/** A run of the test: what it calls with its clients. */
class Run {
  #api;
  #path;
  #strings;
  #threads;
  played = false;

  constructor(api, path, strings, threads) {
    this.#threads = threads;
    this.#api = api;
    this.#path = path;
    this.#strings = strings;
  }

  /** Runs the clients at the same time, in the order that is tried; returns what each returned. */
  async clients(works) {
    const names = Object.keys(works);
    if (this.played) throw new ExploreError("an explored test calls run.clients once");
    if (names.sort().join() !== Object.keys(this.#strings).sort().join()) throw new OtherClients(names);
    this.played = true;
    const all = Promise.allSettled(names.map((name) => this.#client(name, works[name])));
    // Clients that wait for each other do not settle.
    const [settled] = await Promise.all([all, this.#over()]);
    const failed = settled.find((one) => one.status === "rejected");
    if (failed) throw failed.reason;
    return Object.fromEntries(settled.map((one, at) => [names[at], one.value]));
  }

  /** Waits for the turn of a step that the server does not see by itself. */
  async step(client, name, { objects = [], writes = true } = {}) {
    await this.#wait("steps", { client, name, objects, writes });
  }

  #wait(call, body) {
    return this.#api.call("POST", `${this.#path}/${call}`, { body, timeout: 2 * RUN_MS });
  }

  async #client(name, work) {
    const tell = (state) => this.#wait(`clients/${encodeURIComponent(name)}`, state);
    // Answered when the client may begin.
    await tell({ state: "started", threads: this.#threads });
    try {
      return await work(this.#strings[name]);
    } finally {
      // A run that was given up has ended without this client.
      await tell({ state: "finished" }).catch(() => {});
    }
  }

  /** Waits for the end of the run; throws if it does not go on. */
  async #over() {
    const end = Date.now() + RUN_MS;
    for (;;) {
      const query = { wait_ms: LOOK_MS };
      const { state, notes = [], clients } = await this.#api.get(this.#path, query);
      if (state === "over") return;
      if (state === "mismatch") throw new ExploreError(notes.join("; "));
      if (state !== "running") throw new Stuck(notes.join("; "));
      if (Date.now() > end) {
        const late = clients.filter((one) => one.state !== "finished").map((one) => one.client);
        const cure = "the work of a client must end by itself, whatever the others do";
        throw new Stuck(`${late.join(" and ")} did not end within ${RUN_MS / 1000} s: ${cure}`);
      }
    }
  }
}

/** The threads of this process, if the server sees them: not if it is in a container or elsewhere. */
async function threadsFor(api) {
  const { pid } = await api.get("/status");
  const command = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "");
  // Those of the pool are there once it was used.
  return command.startsWith("latchfs") ? (await readdir("/proc/self/task")).map(Number) : [];
}

/** All runs of a search; what the last failing one threw. */
async function runs(api, path, strings, threads, test) {
  let last;
  for (;;) {
    const begun = await api.post(`${path}/runs`);
    if (begun.done) return last;
    const run = new Run(api, `${path}/runs/${begun.run}`, strings, threads);
    let error;
    try {
      await test(run);
      if (!run.played) throw new ExploreError("nothing is explored: call run.clients in the test");
    } catch (thrown) {
      if (thrown instanceof ExploreError || thrown instanceof OtherClients) throw thrown;
      error = thrown;
    }
    const signature = error && [error.name, error.code].filter(Boolean).join(" ");
    await api.post(`${path}/runs/${begun.run}/end`, given({ failed: error !== undefined, signature }));
    if (error !== undefined) last = error;
  }
}

/** The order for people, a line for each step. */
function table(order) {
  const columns = ["step", "client", "operation", "object", "choice", "status"];
  const steps = order.map((step, at) => ({ ...step, step: at + 1 }));
  const rows = [columns, ...steps.map((step) => columns.map((one) => String(step[one] ?? "")))];
  const widths = columns.map((_, at) => Math.max(...rows.map((row) => row[at].length)));
  return rows.map((row) => row.map((cell, at) => cell.padEnd(widths[at])).join("  ").trimEnd());
}

async function search(api, names, options, test) {
  // A client of an earlier test has the name: the search makes its own keys.
  for (const { name } of (await api.get("/clients")).clients) {
    if (names.includes(name)) await api.delete(`/clients/${encodeURIComponent(name)}`);
  }
  const threads = await threadsFor(api);
  const owner = threads.length > 0 ? process.pid : undefined;
  const wanted = { clients: names, state: STATE, idle_ms: PATIENCE_MS, ...given({ owner }), ...options };
  const { exploration, clients } = await api.post("/explorations", wanted);
  const path = `/explorations/${exploration}`;
  let found;
  let last;
  try {
    last = await runs(api, path, clients, threads, test);
  } finally {
    found = await api.delete(path);
  }
  const details = {
    numRuns: found.runs,
    complete: found.complete,
    // A search that has found an order ends, and needs no other reason.
    notes: [...(found.failure ? [] : found.incomplete), ...found.notes],
    path: found.failure?.token,
    order: found.failure?.order,
  };
  if (found.failure === undefined) return details;
  const message = [
    `Property failed after ${found.failure.run} tests`,
    `{ path: ${JSON.stringify(details.path)} }`,
    "Counterexample:",
    ...table(details.order),
    ...details.notes,
    `Got ${last?.name ?? "error"}: ${last?.message ?? last}`,
  ];
  throw new RaceFound(message.join("\n"), details, { cause: last });
}

/** See index.d.ts. */
async function explore(api, test, options) {
  const { numRuns, seed, path, drops, advance = [], ...others } = options;
  refuseOthers("explore", others, "numRuns, seed, path, drops, advance");
  const wanted = given({ budget: numRuns, seed, replay: path, drops, advance_ms: [advance].flat() });
  await api.put(`/states/${STATE}`);
  try {
    return await search(api, CLIENTS, wanted, test).catch((error) => {
      if (!(error instanceof OtherClients)) throw error;
      return search(api, error.names, wanted, test);
    });
  } finally {
    await api.delete(`/states/${STATE}`);
  }
}

module.exports = { explore };
