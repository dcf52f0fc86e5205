// The server's state as this page knows it: lists that are fetched again when events arrive, and now
// and then without events. Decides how often; what the lists look like is decided by the panels.

import { get } from './api.js';

/** How soon after an event a list is fetched again. */
const SOON_MS = 120;
/** How often a list is fetched without any event: opens on a mount make none. */
const IDLE_MS = 1000;
/** A list that takes long is fetched less often: at most this part of the time. */
const SHARE_OF_TIME = 8;
/** How soon a list is asked for again that the server refused to give. */
const REFUSED_MS = 30000;
const TICK_MS = 60;
const AT_ONCE_MAX = 3;

const LISTS = ['handles', 'locks', 'leases', 'pending', 'messages', 'gates', 'faults', 'states', 'report', 'explorations'];
/** What was never tested is for the command. */
const PATHS = { report: 'report?level=hint' };

export class State {
  data = Object.fromEntries(LISTS.map((name) => [name, []]));
  leftOut = {};
  /** The lists that were fetched: of the others it is not known whether they are empty. */
  known = new Set();
  /** Why the server does not give a list, by its name. */
  refused = {};
  /** The clock: `{now, system, frozen, at}`; `at` is when it was read, by `performance.now()`. */
  clock = null;
  #lists = new Map([...LISTS, 'clock'].map((name) => [name, { due: 0, cost: 0, busy: false, again: false, until: 0 }]));
  #changed;
  #running = 0;
  #connected = false;
  #ends = new Map();

  /** `changed(name)` is called when a list was fetched. */
  constructor(changed) {
    this.#changed = changed;
    setInterval(() => this.#tick(), TICK_MS);
  }

  connected(connected) {
    this.#connected = connected;
    if (connected) this.touch(undefined, true);
  }

  /** Something happened that may have changed these lists. `now`: somebody waits for it. */
  touch(names = [...this.#lists.keys()], now = false) {
    const at = performance.now();
    for (const name of names) {
      const list = this.#lists.get(name);
      if (!list) continue;
      if (list.busy) list.again = true;
      const soon = now ? 0 : Math.max(SOON_MS, list.cost * SHARE_OF_TIME);
      list.due = Math.max(Math.min(list.due, at + soon), now ? 0 : list.until);
    }
  }

  #tick() {
    if (!this.#connected || document.hidden) return;
    const now = performance.now();
    const due = [...this.#lists].filter(([, list]) => !list.busy && list.due <= now).sort((a, b) => a[1].due - b[1].due);
    for (const [name, list] of due) {
      if (this.#running >= AT_ONCE_MAX) return;
      this.#fetch(name, list);
    }
  }

  async #fetch(name, list) {
    list.busy = true;
    list.again = false;
    this.#running += 1;
    const began = performance.now();
    let least = 0;
    try {
      const answer = await get(PATHS[name] ?? name);
      delete this.refused[name];
      this.known.add(name);
      if (name === 'clock') this.setClock(answer);
      else {
        this.data[name] = answer[name] ?? answer.findings ?? [];
        this.leftOut[name] = answer.left_out ?? 0;
        for (const row of this.data[name]) row.read = performance.now();
        if (name === 'leases' || name === 'messages') this.#settle(name);
      }
      this.#changed(name);
    } catch (error) {
      // The follower notices a server that is gone, and says so. A refusal is final for a while: a
      // server of an existing directory, for one, has no states.
      if (error.status >= 400 && error.status < 500) {
        least = REFUSED_MS;
        this.refused[name] = error.message;
        this.#changed(name);
      }
    } finally {
      const now = performance.now();
      list.cost = now - began;
      list.until = now + least;
      list.due = now + Math.max(least, list.again ? SOON_MS : IDLE_MS, list.cost * SHARE_OF_TIME);
      list.busy = false;
      this.#running -= 1;
    }
  }

  setClock(clock) {
    if (!clock) return;
    const was = this.clock;
    this.clock = { now: Date.parse(clock.now), system: Date.parse(clock.system), frozen: clock.frozen, at: performance.now() };
    // Times that are left were counted by the clock as it was.
    if (was && this.#turned(was)) {
      for (const end of this.#ends.values()) end.end = NaN;
      this.touch(['leases', 'messages'], true);
    }
    this.#changed('clock');
  }

  /** True if somebody turned the clock since `was` was read. */
  #turned(was) {
    if (was.frozen !== this.clock.frozen) return true;
    return was.frozen ? was.now !== this.clock.now : Math.abs(this.ahead(was) - this.ahead()) > 500;
  }

  /** By how many milliseconds the server's clock is ahead of the system's. */
  ahead(clock = this.clock) { return clock.now - clock.system; }

  /** What the server's clock shows now. */
  now() {
    const { clock } = this;
    if (!clock) return NaN;
    return clock.frozen ? clock.now : clock.now + performance.now() - clock.at;
  }

  /** The system's time on the server. */
  systemNow() {
    const { clock } = this;
    return clock ? clock.system + performance.now() - clock.at : Date.now();
  }

  /**
   * The server gives whole seconds, so each fetch moves the end by up to one: the first estimate
   * stays while the next ones agree with it.
   */
  #settle(name) {
    const ends = new Map();
    for (const row of this.data[name]) {
      if (typeof row.seconds_left !== 'number') continue;
      const key = `${name} ${row.account} ${row.object} ${row.id ?? ''}`;
      const end = row.read + row.seconds_left * 1000;
      const was = this.#ends.get(key);
      const settled = was !== undefined && !this.clock?.frozen && Math.abs(was.end - end) < 1100 ? was.end : end;
      const longest = Math.max(was?.longest ?? 0, row.seconds_left, 1);
      ends.set(key, { end: settled, longest });
      row.end = settled;
      row.longest = longest;
    }
    for (const key of [...this.#ends.keys()]) if (key.startsWith(`${name} `)) this.#ends.delete(key);
    for (const [key, end] of ends) this.#ends.set(key, end);
  }

  /** Seconds left of a row now, by the server's clock; null if it does not end. */
  left(row) {
    if (typeof row.seconds_left !== 'number') return null;
    if (this.clock?.frozen) return row.seconds_left;
    return Math.max(0, (row.end - performance.now()) / 1000);
  }
}
