// The events that the page keeps: bounded, filtered, paused. Decides what an event means (who, what,
// outcome); how events are drawn is decided in stream.js and timeline.js.

import { span } from './dom.js';

/** The most events kept; the oldest are dropped in steps. */
export const KEPT_MAX = 20000;
const DROP_STEP = 2000;
/** The most clients remembered for the filter and the lanes. */
const CLIENTS_MAX = 200;
/** Beyond so many processes of one request, those of one user agent share a lane. */
const SINGLES_MAX = 4;
/** Each command of latchfs is such a process. */
const COMMANDS = 'latchfs-cli';
/** The most requests whose gating is remembered. */
const GATED_MAX = 2000;
/** For how long a request that went on is drawn without an answer. */
const UNANSWERED_MS = 3000;
/** How many of the newest entries tell which clients use the objects of requests that wait. */
const FOCUS_MAX = 1000;

/** An ISO time as milliseconds, with its microseconds. */
export function moment(iso) {
  if (!iso) return NaN;
  const found = /^(.{19})(\.\d+)?(.*)$/.exec(iso);
  return found ? Date.parse(found[1] + (found[3] || 'Z')) + Number(found[2] ?? 0) * 1000 : NaN;
}

/** The program and process of each address that a row told them of: later rows may lack them. */
const processes = new Map();

/** The connection or mount that a row came through, without what changes from request to request. */
export const connection = (row) => (row.connection ?? row.client ?? row.address ?? '').replace(/, request .*$/, '').replace(/^REST /, '');

/** The ways to know a client that give it a name, whatever its connections. */
const NAMED = new Set(['key', 'header', 'trace']);

/** A client's name: its own, or its program and process as far as known, otherwise its address. */
export function clientName(row) {
  if (NAMED.has(row.client_by)) return row.connection ? row.client : row.program;
  if (row.pid > 0) return `${row.program ?? 'process'} ${row.pid}`;
  // A client of the HTTP API has a name and no process.
  return row.program ?? processes.get(connection(row)) ?? connection(row);
}

/** Remembers the process that a row tells of. */
export function noteProcess(row) {
  if (!(row.pid > 0) || !row.program || !(row.connection ?? row.client)?.startsWith('REST ')) return;
  processes.set(connection(row), clientName(row));
  if (processes.size > KEPT_MAX) processes.delete(processes.keys().next().value);
}

/** Who holds what another asked for, in a few words. */
export function holderWords(holder) {
  if (!holder) return '';
  const who = clientName(holder) || (holder.handle ? `handle ${holder.handle}` : '');
  // A request that leased an object or took a message.
  if (holder.address && holder.user_agent) return withAgent(who, shortAgent(holder.user_agent));
  return holder.access ? `${who} (${holder.access}, shares ${holder.share_mode})` : who;
}

/** The address of a connection: its host, and a port. */
const ADDRESS = /^(\[.*\]|[\d.]+):\d+$/;

/** A client's name, and what else tells it apart: a user agent says more than a port. */
export function nameAndAgent(who, agent) {
  if (!agent || agent === who) return [who, ''];
  return ADDRESS.test(who) ? [agent, who] : [who, agent];
}

/** A client's name with the rest in brackets. */
export function withAgent(who, agent) {
  const [name, rest] = nameAndAgent(who, agent);
  return rest ? `${name} (${rest})` : name;
}

/** The cause of a refusal as `docs/blob.md` shows it: what was done, the request's ID, who did it. */
const CAUSE = /^(.+? by [^,]+)(?:, client (?!request )([^,]+))?(, client request [^,]+)?(?:, (.+?))??(?:, from (\S+:\d+))?(;.*)?$/;

/**
 * Who was in the way of a refused entry, and what they did: `{who, agent, name, what}`. The ID of the
 * other request is left to the details.
 */
export function blame(entry) {
  const { holder } = entry;
  if (holder?.access) {
    const who = clientName(holder) || `handle ${holder.handle}`;
    return { who, name: who, what: ` has it open: access ${holder.access}, shares ${holder.share_mode}${openFor(entry)}` };
  }
  // A service's message is its own sentence, and the cause in brackets.
  const cause = /\[latchfs: (.*)\]/.exec(entry.message)?.[1];
  const [, done, client, , agent, address, rest = ''] = CAUSE.exec(cause ?? '') ?? [];
  if (!address) return { who: '', name: '', what: (cause ?? entry.message) || (holder ? `held by ${holderWords(holder)}` : '') };
  const who = client ?? clientName({ address });
  return { who, agent: shortAgent(agent), name: withAgent(who, shortAgent(agent)), what: `: ${done}${rest}` };
}

/** For how long the holder had the file open: rows have the system's time, holders the server's. */
export function openFor({ row, holder }) {
  const ms = moment(row.time) - moment(holder.since);
  return ms >= 1 ? `, for ${span(ms)}` : '';
}

/** The line below a refusal. */
export const blameWords = (entry) => blame(entry).name + blame(entry).what;

/** A user agent's first product, without its version. */
export function shortAgent(agent) {
  return (agent ?? '').split(/[\s/(]/, 1)[0].replace(/^azsdk-/, '');
}

const WORDS = {
  granted: 'opened', closed: 'closed', 'force-closed': 'force-closed', 'delete-pending': 'delete pending',
  undeleted: 'undeleted', removed: 'removed', 'share-changed': 'share mode changed', gated: 'stopped at gate',
  released: 'went on', abandoned: 'ended at the gate', fault: 'met a fault',
};

/** The reason of a refusal takes up to three lines, of about so many letters each. */
const LINE_LETTERS = 88;

/** Events that concern the server as a whole: a line across the timeline. */
const GLOBAL = /^(clock|state|gate-|fault-|reset|mark|exploration|page$|server)/;

function target(row) {
  if (row.object && !row.path) return row.object;
  const path = row.path ?? '';
  if (row.share && row.event !== 'request' && !path.startsWith(`${row.share}/`)) return `${row.share}${path.startsWith('/') ? '' : '/'}${path}`;
  return path;
}

function globalWords(row) {
  if (row.text) return row.text;
  const [noun, done] = row.event.split('-');
  // The date is in the details; a line of the timeline has little room.
  const detail = (row.detail ?? '').replace(/\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)[.\d]*Z/, '$1');
  // The page shows the system's time: a turn of the server's clock must not pass for it.
  if (noun === 'clock') return `server clock ${detail}`;
  if (!done) return `${noun} ${detail}`.trim();
  return detail === 'all' ? `all ${noun}s ${done}` : `${noun} ${row.id} ${done} ${detail}`.trim();
}

/**
 * True for a refusal that the request's own row tells as well: the log of files has an entry for each
 * refusal, and HTTP requests have one for each answer.
 */
const isToldTwice = (row) => row.event === 'refused' && /^REST /.test(row.connection ?? row.client ?? '');

/** Makes an entry of the log from a row of the API. */
export function entryOf(row) {
  const kind = row.event ?? 'request';
  // The system's clock: the server's may stand still.
  const at = moment(row.system ?? row.time);
  const isGlobal = GLOBAL.test(kind);
  const refusal = kind === 'refused' ? row : row.refusal ?? null;
  const status = typeof row.status === 'number' ? row.status : null;
  const refused = Boolean(refusal?.rule) || status === 409 || status === 412;
  const dropped = kind === 'request' && status === null;
  const start = kind === 'request' ? moment(row.started) : NaN;
  const entry = {
    row, kind, at, isGlobal, refused, status, dropped,
    /** True if the entry is the end of a request, and so a bar. */
    isEnd: kind === 'request' || kind === 'abandoned',
    failed: refused || dropped || status >= 400,
    seq: row.seq ?? 0,
    service: row.service ?? (row.share ? 'file' : ''),
    /** The process may become known after the row. */
    get who() { return isGlobal ? (row.client ?? '').replace(/ through the (HTTP API|control socket)$/, '') : clientName(row); },
    operation: isGlobal ? globalWords(row) : row.operation ?? WORDS[kind] ?? kind,
    target: isGlobal ? '' : target(row),
    code: row.code ?? null,
    rule: refusal?.rule ?? null,
    message: refusal?.message ?? '',
    holder: refusal?.holder ?? null,
    start: Number.isFinite(start) ? start : at,
    end: kind === 'request' && Number.isFinite(start) ? start + (row.duration_us ?? 0) / 1000 : at,
    /** When the request waited at gates: `{from, to}` each, `to` null while it waits. */
    gates: [],
    agent: shortAgent(row.user_agent),
  };
  entry.search = `${entry.service} ${entry.operation} ${entry.target} ${entry.who} ${entry.code ?? ''} ${entry.rule ?? ''} ${entry.kind} ${status ?? ''} ${row.user_agent ?? ''} ${row.client_request ?? ''} ${entry.message}`.toLowerCase();
  return entry;
}

/** What an entry came to, in a few words. */
export function outcome(entry) {
  if (entry.status !== null) return `${entry.status}${entry.code ? ` ${entry.code}` : ''}`;
  if (entry.dropped) return 'connection closed';
  if (entry.kind === 'refused') return entry.row.errno ?? 'refused';
  return WORDS[entry.kind] ?? entry.kind;
}

/** How long an answered entry waited at gates, in milliseconds. */
export const gatedTime = (entry) => entry.gates.reduce((sum, { from, to }) => sum + (to ?? entry.end) - from, 0);

export class Log {
  entries = [];
  /** The entries that pass the filters. */
  visible = [];
  /** The lines of the list: each visible entry, and below a refusal what was in the way. */
  lines = [];
  clients = new Map();
  /** Requests that stopped at a gate and have no answer yet, by client: `{entry, gates}`. */
  gated = new Map();
  paused = false;
  /** True once the server's events are followed: before, nobody knows whether there are any. */
  known = false;
  lost = 0;
  /** How many lines were dropped from the front since the list last asked. */
  droppedLines = 0;
  filter = { text: '', refusals: false };
  #held = [];
  /** How many clients of each user agent have had one request. */
  #singles = new Map();
  #order = 0;
  #changed;
  #now;

  /** `changed()` is called after each change; `now()` is the system's time on the server. */
  constructor(changed, now) {
    this.#changed = changed;
    this.#now = now;
  }

  /** Events that arrived while the log was paused. */
  get held() { return this.#held.length; }

  add(rows) {
    if (this.paused) {
      for (const row of rows) this.#held.push(row);
      if (this.#held.length > KEPT_MAX) this.#held.splice(0, this.#held.length - KEPT_MAX);
    } else {
      this.#append(rows);
    }
    this.#changed();
  }

  pause(paused) {
    this.paused = paused;
    if (!paused) this.#append(this.#held.splice(0));
    this.#changed();
  }

  clear() {
    this.entries = [];
    this.visible = [];
    this.lines = [];
    this.#held = [];
    this.clients.clear();
    this.#singles.clear();
    this.gated.clear();
    this.lost = 0;
    this.#changed();
  }

  /** The server was started anew: no request of the former run waits any more. */
  restarted() { this.gated.clear(); }

  setFilter(change) {
    Object.assign(this.filter, change);
    this.filter.text = this.filter.text.trim().toLowerCase();
    this.visible = this.entries.filter((entry) => this.matches(entry));
    this.lines = [];
    for (const entry of this.visible) this.#addLines(entry);
    this.droppedLines = 0;
    this.#changed();
  }

  get filtered() { return Boolean(this.filter.text || this.filter.refusals); }

  matches(entry) {
    const { text, refusals } = this.filter;
    return (!refusals || entry.failed) && (!text || text.split(/\s+/).every((word) => entry.search.includes(word)));
  }

  #append(rows) {
    for (const row of rows) {
      noteProcess(row);
      if (isToldTwice(row)) continue;
      const entry = entryOf(row);
      this.#noteGate(entry);
      this.#noteClient(entry);
      this.entries.push(entry);
      if (this.matches(entry)) {
        this.visible.push(entry);
        this.#addLines(entry);
      }
    }
    if (this.entries.length > KEPT_MAX) this.#drop();
  }

  #addLines(entry) {
    this.lines.push(entry);
    if (!entry.refused || !(entry.holder || entry.message)) return;
    const lines = Math.min(3, Math.ceil(blameWords(entry).length / LINE_LETTERS));
    for (let part = 0; part < lines; part += 1) this.lines.push({ below: entry, part, lines });
  }

  #drop() {
    // Sequence numbers restart with the server, so identity and not order tells what is gone.
    const gone = new Set(this.entries.splice(0, this.entries.length - KEPT_MAX + DROP_STEP));
    const first = (list) => {
      const found = list.findIndex((line) => !gone.has(line.below ?? line));
      return found < 0 ? list.length : found;
    };
    this.visible.splice(0, first(this.visible));
    this.droppedLines += this.lines.splice(0, first(this.lines)).length;
  }

  /** Rows of a request are told from others of its client by the ID that the client gave it. */
  #noteGate(entry) {
    const key = `${connection(entry.row)} ${entry.row.client_request ?? ''}`;
    const open = this.gated.get(key);
    if (entry.kind === 'gated') {
      const gate = { from: entry.at, to: null, request: entry.row.request };
      if (open) open.gates.push(gate);
      else this.gated.set(key, { entry, gates: [gate] });
      if (this.gated.size > GATED_MAX) this.gated.delete(this.gated.keys().next().value);
    } else if (entry.kind === 'released') {
      const gate = open?.gates.find((one) => one.request === entry.row.request);
      if (gate) gate.to = entry.at;
    } else if (entry.isEnd && open) {
      // The start of a request that gets no answer is not told.
      if (entry.kind === 'abandoned') entry.start = open.gates[0].from;
      for (const gate of open.gates) gate.to ??= entry.end;
      entry.gates = open.gates;
      this.gated.delete(key);
    }
  }

  /** Requests that wait at a gate, or went on a moment ago and are not answered yet. */
  waiting() {
    for (const [key, { gates }] of this.gated) {
      const last = gates[gates.length - 1].to;
      // A client that went away after its release gets no answer.
      if (last !== null && this.#now() - last > UNANSWERED_MS) this.gated.delete(key);
    }
    return [...this.gated.values()].filter(({ entry }) => this.matches(entry));
  }

  #noteClient(entry) {
    if (entry.isGlobal || !entry.who) return;
    let known = this.clients.get(entry.who);
    if (!known) {
      if (this.clients.size >= CLIENTS_MAX) this.clients.delete(this.clients.keys().next().value);
      const { row } = entry;
      known = { requests: 0, order: this.#order += 1, agent: entry.agent || (row.pid > 0 ? (row.client ?? '').replace(/^mount .*\//, 'mount ') : '') };
      this.clients.set(entry.who, known);
    }
    known.agent ||= entry.agent;
    if (entry.kind !== 'request') return;
    known.requests += 1;
    if (known.requests > 2 || !entry.agent) return;
    const singles = (this.#singles.get(entry.agent) ?? 0) + (known.requests === 1 ? 1 : -1);
    this.#singles.set(entry.agent, singles);
  }

  /**
   * The lane of an entry: its process and user agent; the user agent and the host, if the process is
   * not known; the user agent alone, if it has many processes of one request each.
   */
  laneOf({ who, agent }) {
    const { requests, order = Infinity, agent: known } = this.clients.get(who) ?? {};
    const [, host] = ADDRESS.exec(who) ?? [];
    if (agent && host) return { key: `${agent} ${host}`, name: agent, about: host, order };
    if (agent && requests === 1 && this.#singles.get(agent) > (agent === COMMANDS ? 1 : SINGLES_MAX)) return { key: agent, name: agent, about: 'a process each', order: Infinity };
    const [, about] = nameAndAgent(who, agent || known);
    return { key: `${who} ${about}`, name: who, about, order };
  }

  /**
   * The lanes to draw while requests wait: those that wait, those that were refused, and those of
   * clients that used the same objects; and how many others there are. Null if nothing waits.
   */
  focus() {
    const waiting = this.waiting();
    if (waiting.length === 0) return null;
    const recent = this.visible.slice(-FOCUS_MAX).filter((entry) => !entry.isGlobal);
    const refused = recent.filter((entry) => entry.refused);
    const targets = new Set([...waiting.map(({ entry }) => entry.target), ...refused.map(({ target: of }) => of)]);
    const lanes = new Set([...waiting.map(({ entry }) => entry), ...refused.map(blame)].map((one) => this.laneOf(one).key));
    const others = new Set();
    for (const entry of recent) (targets.has(entry.target) ? lanes : others).add(this.laneOf(entry).key);
    return { lanes, idle: [...others].filter((key) => key && !lanes.has(key)).length };
  }

  /** The newest entry of the client that stood in the way of a refusal: its open, or what it did. */
  causeOf(entry) {
    const { who, agent } = blame(entry);
    const { handle } = entry.holder ?? {};
    const before = this.visible.filter((one) => one.seq < entry.seq && one.who === who && (handle || one.agent === agent));
    return before.findLast((one) => (handle ? one.row.handle === handle : one.target === entry.target && !one.failed)) ?? before.at(-1) ?? null;
  }

  /** What another client did last with the object of a request that waits. */
  rivalOf({ path, client }) {
    return this.entries.findLast((one) => one.target === path && one.kind === 'request' && connection(one.row) !== connection({ client })) ?? null;
  }
}
