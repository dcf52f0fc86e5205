// Calls of the admin API.

const http = require("node:http");
const https = require("node:https");

const { ApiError, LatchfsError, Refused, WaitTimeout } = require("./errors.js");

const PREFIX = "/api/v1";
/** The version of the API that this package speaks. A server tells its own in each answer. */
const VERSION = "3";
/** How long a call may take that does not wait for something. */
const TIMEOUT_MS = 60_000;

/** The fields that have a value. */
function given(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** The admin API of one server. */
class Api {
  #url;
  #account;

  constructor(url, { token, account } = {}) {
    // 'localhost:10009' is a URL too, of the protocol localhost.
    if (!/^https?:/.test(url) || !URL.canParse(url)) {
      throw new LatchfsError(`'${url}' is not the URL of a server, such as http://127.0.0.1:10009`);
    }
    this.#url = new URL(url);
    this.url = this.#url.origin;
    this.token = token;
    this.#account = account;
  }

  /** Asks, and returns the answer. */
  get(path, query, options) {
    return this.call("GET", path, { query, ...options });
  }

  /** Does something, and returns the answer. */
  post(path, body = {}) {
    return this.call("POST", path, { body });
  }

  /** Stores something, and returns the answer. */
  put(path, body = {}) {
    return this.call("PUT", path, { body });
  }

  /** Removes something, and returns the answer. */
  delete(path, query) {
    return this.call("DELETE", path, { query });
  }

  /** Calls the path below /api/v1 (`/leases` or `leases`) and returns the JSON of the answer. */
  async call(method, path, { query, body, timeout = TIMEOUT_MS } = {}) {
    const answer = await this.#send(method, path, query, body, timeout);
    return checked(answer.statusCode, await textOf(answer));
  }

  /** Posts a request whose answer is one line of JSON and lasts as long as the connection. */
  async holdStream(path, body) {
    const answer = await this.#send("POST", path, undefined, body, TIMEOUT_MS);
    if (answer.statusCode >= 300) checked(answer.statusCode, await textOf(answer));
    const line = await firstLine(answer);
    // Nothing more comes, and a hold that a test forgot does not keep its runner from ending.
    answer.socket.setTimeout(0);
    answer.socket.unref();
    return { granted: JSON.parse(line), close: () => answer.destroy() };
  }

  #send(method, path, query, body, timeout) {
    const target = new URL(`${PREFIX}/${path.replace(/^\/+/, "")}`, this.#url);
    for (const [name, value] of Object.entries(given({ ...query, account: this.#account }))) {
      target.searchParams.set(name, String(value));
    }
    const headers = { "x-latchfs-client": "node", accept: "application/json" };
    if (this.token !== undefined) headers.authorization = `Bearer ${this.token}`;
    const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    if (content !== undefined) {
      headers["content-type"] = "application/json";
      headers["content-length"] = content.length;
    }
    const { request } = target.protocol === "https:" ? https : http;
    return new Promise((resolve, reject) => {
      const call = request(target, { method, headers, timeout, agent: false }, (answer) => {
        const version = answer.headers["x-latchfs-api"];
        if (version === VERSION) return resolve(answer);
        answer.destroy();
        // A server of 0.2 names none.
        const spoken = version === undefined ? "no version" : `version ${version}`;
        const both = `${this.url} speaks ${spoken} of the API, this package version ${VERSION}`;
        const cure = "use the package and the server of one release, and the server's admin address";
        reject(new LatchfsError(`the server at ${both}: ${cure}`));
      });
      call.on("timeout", () => call.destroy(new Error(`no answer within ${timeout} ms`)));
      call.on("error", (cause) => {
        const hint = "does the server run, and is this its admin address?";
        reject(new LatchfsError(`${method} ${target}: ${cause.message}; ${hint}`, { cause }));
      });
      call.end(content);
    });
  }
}

async function textOf(answer) {
  let text = "";
  answer.setEncoding("utf8");
  for await (const part of answer) text += part;
  return text;
}

function firstLine(answer) {
  return new Promise((resolve, reject) => {
    let text = "";
    answer.setEncoding("utf8");
    answer.on("data", (part) => {
      text += part;
      const end = text.indexOf("\n");
      if (end >= 0) resolve(text.slice(0, end));
    });
    // The last two also come when the hold is released: then nobody listens any more.
    answer.on("error", reject);
    answer.on("close", () => reject(new LatchfsError("the server closed the connection")));
  });
}

function checked(status, text) {
  let answer;
  try {
    answer = text.trim() === "" ? {} : JSON.parse(text);
  } catch {
    throw new ApiError(status, "failed", `the answer ${status} is not JSON: ${text.slice(0, 200)}`);
  }
  if (status < 300) return answer;
  const { kind = "failed", message = `the server answered ${status}`, holder } = answer.error ?? {};
  if (status === 408) throw new WaitTimeout(status, kind, message);
  if (status === 409) throw new Refused(status, kind, message, holder);
  throw new ApiError(status, kind, message);
}

module.exports = { Api, given };
