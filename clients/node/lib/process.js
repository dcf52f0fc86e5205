// Starts the program and ends it again.
//
// The server reads from a pipe whose other end is this process's alone: when this process ends,
// however it does, the server ends too (--until-stdin-closes). The server has a session of its own,
// so that Ctrl-C reaches the test runner first, which then stops the server.

const { spawn } = require("node:child_process");
const { once } = require("node:events");

const { binary } = require("./binary.js");
const { StartError } = require("./errors.js");

/** How long a server may take to stop before it is killed. */
const STOP_MS = 30_000;
/** How much of what the server writes to standard error is kept. */
const ERRORS_MAX = 64 * 1024;

/** A server that this process has started. */
class Process {
  #child;
  #ended;
  #errors = "";

  constructor(child) {
    this.#child = child;
    this.#ended = once(child, "close").catch(() => {});
    child.stderr.setEncoding("utf8").on("data", (text) => {
      this.#errors = (this.#errors + text).slice(-ERRORS_MAX);
    });
    // A server that has ended already is noticed elsewhere.
    child.stdin.on("error", () => {});
  }

  /** Starts a server and waits until it is ready. */
  static async start(args, env, timeout) {
    const child = spawn(binary(), ["serve", "--json", "--until-stdin-closes", ...args], {
      env: environment(env),
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    const process = new Process(child);
    try {
      process.ready = await process.#line(timeout);
    } catch (error) {
      await process.stop();
      throw error;
    }
    // A server that a test forgot does not keep its runner from ending, which ends the server.
    child.unref();
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.unref();
    return process;
  }

  get pid() {
    return this.#child.pid;
  }

  /** Stops the server and waits for its end. A second call does nothing more. */
  async stop() {
    this.#child.ref();
    this.#child.stdin.destroy();
    const kill = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MS);
    try {
      await this.#ended;
    } finally {
      clearTimeout(kill);
    }
  }

  /** The first line of the server's output says where everything is. */
  #line(timeout) {
    const child = this.#child;
    return new Promise((resolve, reject) => {
      let text = "";
      const late = setTimeout(() => {
        reject(new StartError(`the server was not ready within ${timeout} ms: ${messages(this.#errors)}`));
      }, timeout);
      const fail = (why) => {
        clearTimeout(late);
        reject(new StartError(`${why}: ${messages(this.#errors)}`));
      };
      child.once("error", (error) => fail(error.message));
      child.once("close", (code, signal) => fail(`latchfs ended with ${signal ?? `status ${code}`}`));
      child.stdout.setEncoding("utf8").on("data", (part) => {
        text += part;
        const end = text.indexOf("\n");
        if (end < 0) return;
        clearTimeout(late);
        try {
          resolve(JSON.parse(text.slice(0, end)));
        } catch {
          fail(`latchfs said ${text.slice(0, end)} where it says that it is ready`);
        }
      });
    });
  }
}

/** The messages of errors in JSON; any other line as it is. */
function messages(text) {
  const message = (line) => {
    try {
      return JSON.parse(line).error.message;
    } catch {
      return line;
    }
  };
  return text.trim().split("\n").map(message).join("\n");
}

/** The environment without variables that are options of another server. */
function environment(added) {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("LATCHFS_"));
  return { ...Object.fromEntries(kept), ...added };
}

module.exports = { Process };
