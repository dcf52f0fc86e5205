// The server: started by this process, or one that runs already.

const { randomUUID } = require("node:crypto");
const { tmpdir } = require("node:os");
const { join } = require("node:path");

const { Api, given } = require("./api.js");
const { Clock, Fault, Gate, Hold, States, refuseOthers } = require("./controls.js");
const { ApiError, LatchfsError, StartError } = require("./errors.js");
const { explore } = require("./explore.js");
const { Process } = require("./process.js");
const { line } = require("./story.js");

const SHARE = "share";
const SERVICES = ["file", "blob", "queue", "table"];

/** The path and the options of a gate or a fault, whose path may be left out. */
function pathAndOptions(path, options) {
  return path !== null && typeof path === "object" ? [undefined, { ...path, ...options }] : [path, options];
}

/** The share that is meant where the caller names none: `share`, or the first one by name. */
async function shareOf(api, account) {
  const { shares } = await api.get("/status");
  const names = shares.filter((row) => row.account === account).map((row) => row.name).sort();
  return names.includes(SHARE) ? SHARE : (names[0] ?? SHARE);
}

/** The SDK: its ES modules, or where the runner of the tests cannot import (jest), its CommonJS. */
async function fileSdk() {
  try {
    return await import("@azure/storage-file-share");
  } catch {
    try {
      return require("@azure/storage-file-share");
    } catch (cause) {
      // A package of the SDK may have ES modules alone, which jest cannot load by default.
      const cure =
        cause.code === "MODULE_NOT_FOUND"
          ? "npm install @azure/storage-file-share"
          : "it cannot be loaded here; jest needs NODE_OPTIONS=--experimental-vm-modules for it";
      throw new LatchfsError(`this needs the SDK: ${cure}`, { cause });
    }
  }
}

/** A latchfs server for tests. The declarations in index.d.ts say what each member does. */
class Server {
  #process;
  #ready;
  #holds = new Set();

  /** Use Server.start or Server.connect. */
  constructor(api, ready, share, process) {
    this.api = api;
    this.share = share;
    this.clock = new Clock(api);
    this.state = new States(api);
    this.#ready = ready;
    this.#process = process;
  }

  static async start(options = {}) {
    const { shares = [SHARE], mount = false, args = [], env = {}, timeout = 60_000, ...others } = options;
    refuseOthers("start", others, "shares, mount, args, env, timeout");
    if (!Array.isArray(shares) || shares.length === 0) {
      throw new LatchfsError("shares: expected a list of names, at least one");
    }
    const named = (...options) => args.some((one) => options.includes(one.split("=", 1)[0]));
    const process = await Process.start(
      [
        ...shares.flatMap((share) => ["--share", share]),
        ...(named("--data", "--in-memory") ? [] : ["--in-memory"]),
        ...(named("--file", "--listen", "--no-rest") ? [] : ["--file", "127.0.0.1:0"]),
        // The server makes the directory and removes it, also when this process is killed.
        ...(mount ? ["--mount-dir", join(tmpdir(), `latchfs-${randomUUID()}`)] : ["--no-mount"]),
        ...args,
      ],
      env,
      timeout,
    );
    const { ready } = process;
    const fail = async (why) => {
      await process.stop();
      throw new StartError(why);
    };
    if (ready.admin === undefined) {
      await fail("the server has no admin address: leave --admin off away");
    }
    if (mount && ready.mounts?.[shares[0]] === undefined) {
      const why = (ready.notes ?? ["`latchfs doctor` says why"]).join("; ");
      await fail(`the share cannot be mounted on this machine: ${why}`);
    }
    const api = new Api(ready.admin, { token: ready.admin_token });
    return new Server(api, ready, shares[0], process);
  }

  static async connect(url, { token, account, share, ...others } = {}) {
    refuseOthers("connect", others, "token, account, share");
    const api = new Api(url, { token, account });
    const ready = await api.get("/connection");
    return new Server(api, ready, share ?? (await shareOf(api, ready.account)));
  }

  get connectionString() {
    return this.#ready.connection_string;
  }

  async client(name) {
    const { clients } = await this.api.get("/clients");
    const known = clients.find((client) => client.name === name);
    return (known ?? (await this.api.post("/clients", { name }))).connection_string;
  }

  get endpoints() {
    return { ...this.#ready.endpoints };
  }

  get account() {
    return this.#ready.account;
  }

  get key() {
    return this.#ready.key;
  }

  get admin() {
    return this.api.url;
  }

  get pid() {
    return this.#process?.pid;
  }

  get mount() {
    return this.#ready.mounts?.[this.share];
  }

  async file(path, { shareName = this.share } = {}) {
    const { share, names } = await this.#place(path, shareName);
    let directory = share.rootDirectoryClient;
    for (const name of names.slice(0, -1)) directory = directory.getDirectoryClient(name);
    return directory.getFileClient(names.at(-1));
  }

  async put(path, data, { shareName = this.share } = {}) {
    const { share, names } = await this.#place(path, shareName);
    let directory = share.rootDirectoryClient;
    for (const name of names.slice(0, -1)) {
      directory = directory.getDirectoryClient(name);
      await directory.createIfNotExists();
    }
    const file = directory.getFileClient(names.at(-1));
    await file.uploadData(Buffer.from(data));
    return file;
  }

  async #place(path, shareName) {
    const sdk = await fileSdk();
    const service = sdk.ShareServiceClient.fromConnectionString(this.connectionString);
    const names = path.split("/").filter((name) => name !== "");
    return { share: service.getShareClient(shareName), names };
  }

  async hold(path, options = {}) {
    const { access = "r", share = "none", shareName = this.share, ...more } = options;
    const { disposition = "open", deleteOnClose, locks, limit = 600_000, ...others } = more;
    refuseOthers("hold", others, "access, share, shareName, disposition, deleteOnClose, locks, limit");
    const body = {
      path,
      share: shareName,
      access,
      share_mode: share,
      disposition,
      delete_on_close: deleteOnClose,
      locks,
      for_ms: limit,
    };
    return Hold.open(this.api, given(body), this.#holds);
  }

  async holding(path, options, work) {
    const hold = await this.hold(path, options);
    try {
      return await work(hold);
    } finally {
      await hold.release();
    }
  }

  async gate(operation, ...more) {
    const [path, options = {}] = pathAndOptions(...more);
    const { service, headers, at = "received", times, limit = 60_000, ...others } = options;
    refuseOthers("gate", others, "service, headers, at, times, limit");
    const body = { operation, path, service, headers, at, times, limit_ms: limit };
    return Gate.add(this.api, given(body));
  }

  async fault(operation, ...more) {
    const [path, options = {}] = pathAndOptions(...more);
    const { answer, delay, drop, cut, slow, service, headers, ...rest } = options;
    const { times, probability, seed, ...others } = rest;
    const known = "answer, delay, drop, cut, slow, service, headers, times, probability, seed";
    refuseOthers("fault", others, known);
    const actions = [];
    if (answer !== undefined) {
      if (answer?.status === undefined || answer.code === undefined) {
        throw new LatchfsError("answer: expected a status and a code, as in { status: 503, code: 'ServerBusy' }");
      }
      actions.push({ answer });
    }
    if (delay !== undefined) actions.push({ delay_ms: delay });
    if (drop !== undefined) {
      if (!["before", "after"].includes(drop)) {
        throw new LatchfsError(`drop '${drop}': expected 'before' or 'after'`);
      }
      actions.push(`drop_${drop}`);
    }
    if (cut !== undefined) actions.push({ cut_bytes: cut });
    if (slow !== undefined) actions.push({ bytes_per_second: slow });
    if (actions.length !== 1) {
      throw new LatchfsError("a fault is one of answer, delay, drop, cut and slow");
    }
    const [action] = actions;
    const body = { operation, path, service, headers, action, times, probability, seed };
    return Fault.add(this.api, given(body));
  }

  explore(test, options = {}) {
    return explore(this.api, test, options);
  }

  async reset() {
    await this.api.post("/reset");
    this.#letHoldsGo();
  }

  #letHoldsGo() {
    for (const hold of this.#holds) hold.letGo();
  }

  async why(target) {
    const named = SERVICES.includes(target.split(":", 1)[0]) && target.includes(":");
    const object = named ? target : `file:${this.share}/${target.replace(/^\/+/, "")}`;
    try {
      return await this.api.get("/why", { object });
    } catch (error) {
      if (error.status !== 404 || error.message.includes(object)) throw error;
      throw new ApiError(error.status, error.kind, `${object}: ${error.message}`);
    }
  }

  async events({ after, wait, kind, service, ...others } = {}) {
    refuseOthers("events", others, "after, wait, kind, service");
    const found = [];
    for (;;) {
      const query = { after, wait_ms: wait, kind, service };
      const page = await this.api.get("/events", query, { timeout: 60_000 + (wait ?? 0) });
      found.push(...page.events);
      // A page is bounded; the next one is there already.
      if (page.last >= page.newest) return found;
      after = page.last;
      wait = undefined;
    }
  }

  async mark(test) {
    return (await this.api.post("/marks", { test })).mark;
  }

  async story(mark, { last = 20, ...others } = {}) {
    refuseOthers("story", others, "last");
    const events = await this.events({ after: mark, kind: "request" });
    return events.slice(-last).map(line);
  }

  async report({ since, level, ...others } = {}) {
    refuseOthers("report", others, "since, level");
    return this.api.get("/report", given({ since, level }));
  }

  async handles(path = "", { shareName = this.share } = {}) {
    const query = { share: shareName, path, recursive: true };
    return (await this.api.get("/handles", query)).handles;
  }

  async close() {
    this.#letHoldsGo();
    await this.#process?.stop();
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

module.exports = { Server };
