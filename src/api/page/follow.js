// Follows the server's events (SSE over fetch, which unlike EventSource sends the token as a header
// and gives events of kinds that this page does not know). Decides when to connect again and from
// which event; what events mean is decided in log.js.

import { address, apiError, get, headers } from './api.js';

const RETRY_FIRST_MS = 150;
const RETRY_MAX_MS = 2000;
/** Without a token there is nothing to try: the pause ends when one is given. */
const UNTIL_TOLD_MS = 2 ** 31 - 1;
/** The server sends a comment at least this often; a silent connection is given up. */
const SILENCE_MS = 45000;

/** Splits a stream of bytes into server-sent events. */
export class SseParser {
  #rest = '';
  #fields = { data: [] };
  #decoder = new TextDecoder();

  /** Gives the events that `bytes` completes, as `{id, event, data}`. */
  push(bytes) {
    const text = this.#rest + this.#decoder.decode(bytes, { stream: true });
    const lines = text.split(/\r\n|\n|\r(?=.)/);
    this.#rest = lines.pop();
    const done = [];
    for (const line of lines) {
      if (line === '') {
        if (this.#fields.data.length > 0) done.push({ ...this.#fields, data: this.#fields.data.join('\n') });
        this.#fields = { data: [] };
      } else if (!line.startsWith(':')) {
        const colon = line.indexOf(':');
        const name = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
        if (name === 'data') this.#fields.data.push(value);
        else this.#fields[name] = value;
      }
    }
    return done;
  }
}

/**
 * Follows for as long as the page is open.
 * `on.link(state, detail)`: 'connecting', 'live', 'reconnecting', 'token'.
 * `on.server(status, restarted)`: the server's status, at each connection.
 * `on.events(rows)`, `on.lost(n)`.
 */
export class Follower {
  #on;
  #after = 0;
  #server = null;
  #abort = null;
  #wake = null;

  constructor(on) {
    this.#on = on;
    addEventListener('online', () => this.#wake?.());
    document.addEventListener('visibilitychange', () => document.hidden || this.#wake?.());
    this.#run();
  }

  /** Starts again from the oldest event: another account or token is in use. */
  restart() {
    this.#after = 0;
    this.#server = null;
    this.#abort?.abort();
    this.#wake?.();
  }

  async #run() {
    let tries = 0;
    for (;;) {
      this.#on.link(this.#server || tries > 0 ? 'reconnecting' : 'connecting');
      try {
        await this.#connect(() => { tries = 0; });
      } catch (error) {
        if (error.status === 401) {
          this.#on.link('token');
          await this.#pause(UNTIL_TOLD_MS);
          continue;
        }
      }
      tries += 1;
      this.#on.link(this.#server || tries > 3 ? 'reconnecting' : 'connecting');
      await this.#pause(Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 1.6 ** Math.min(tries, 10)));
    }
  }

  #pause(ms) {
    return new Promise((done) => {
      const timer = setTimeout(done, ms);
      this.#wake = () => { clearTimeout(timer); done(); };
    });
  }

  async #connect(connected) {
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    const status = await get('status');
    const known = this.#server;
    // A container's server has the same pid in each run: its uptime tells the runs apart.
    const restarted = known !== null && (known.pid !== status.pid || status.uptime_seconds < known.uptime_seconds);
    if (restarted) this.#after = 0;
    this.#server = status;
    this.#on.server(status, restarted);
    const answer = await fetch(address('events', { after: this.#after }, null), {
      signal,
      headers: headers({ accept: 'text/event-stream', 'last-event-id': String(this.#after) }),
    });
    if (!answer.ok) throw apiError(answer.status, `events: ${answer.status}`);
    this.#on.link('live');
    connected();
    await this.#read(answer.body.getReader());
  }

  async #read(reader) {
    const parser = new SseParser();
    let timer;
    const guard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => reader.cancel().catch(() => {}), SILENCE_MS);
    };
    try {
      for (;;) {
        guard();
        const { value, done } = await reader.read();
        if (done) return;
        this.#take(parser.push(value));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  #take(events) {
    const rows = [];
    for (const event of events) {
      let row;
      try {
        row = JSON.parse(event.data);
      } catch {
        continue;
      }
      if (event.event === 'lost' || (row.lost > 0 && row.seq === undefined)) {
        this.#on.lost(Number(row.lost) || 0);
        continue;
      }
      if (event.id) this.#after = Number(event.id);
      row.event ??= event.event;
      rows.push(row);
    }
    if (rows.length > 0) this.#on.events(rows);
  }
}
