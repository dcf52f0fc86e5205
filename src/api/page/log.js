// The events that the page keeps: bounded, filtered, paused. Decides what an event means (who, what,
// outcome); how events are drawn is decided in stream.js and timeline.js.

/** The most events kept; the oldest are dropped in steps. */
export const KEPT_MAX = 20000;
const DROP_STEP = 2000;
/** The most clients remembered for the filter and the lanes. */
const CLIENTS_MAX = 200;
/** Beyond so many connections of one request, those of one user agent share a lane. */
const SINGLES_MAX = 4;
/** Each command of latchfs is such a connection. */
const COMMANDS = 'latchfs-cli';
/** The most requests whose gating is remembered. */
const GATED_MAX = 2000;
/** For how long a request that went on is drawn without an answer. */
const UNANSWERED_MS = 3000;
/** Events older than this when they arrive are history, not part of the rate. */
const HISTORY_MS = 5000;

/** An ISO time as milliseconds, with its microseconds. */
export function moment(iso) {
  if (!iso) return NaN;
  const found = /^(.{19})(\.\d+)?(.*)$/.exec(iso);
  return found ? Date.parse(found[1] + (found[3] || 'Z')) + Number(found[2] ?? 0) * 1000 : NaN;
}

/** A client's name without what changes from request to request. */
export function clientName(row) {
  if (row.pid > 0) return `${row.program ?? 'process'} ${row.pid}`;
  // A client of the HTTP API has a name and no process.
  if (row.program) return row.program;
  return (row.client ?? row.address ?? '').replace(/, request .*$/, '').replace(/^REST /, '');
}

/** Who holds what another asked for, in a few words. */
export function holderWords(holder) {
  if (!holder) return '';
  if (typeof holder === 'string') return holder.replace(/^REST /, '');
  const who = clientName(holder) || (holder.handle ? `handle ${holder.handle}` : '');
  // A request that leased an object or took a message.
  if (holder.address && holder.user_agent) return withAgent(who, shortAgent(holder.user_agent));
  const modes = holder.access ? ` (${holder.access}, shares ${holder.share_mode})` : '';
  return who + modes;
}

/** A client's address and user agent in brackets, as far as known. */
export const withAgent = (who, agent) => (agent && agent !== who ? `${who} (${agent})` : who);

/** The cause of a refusal as `docs/blob.md` shows it: what was done, the request's ID, who did it. */
const CAUSE = /^(.+? by [^,]+)(, client request [^,]+)?(?:, (.+?))??(?:, from (\S+:\d+))?(;.*)?$/;

/** A cause with the client first: a line has little room, and the ID of a request takes most of it. */
function clientFirst(cause) {
  const [, done, request = '', agent, address, rest = ''] = CAUSE.exec(cause) ?? [];
  if (!address) return cause;
  return `${withAgent(address, shortAgent(agent))}: ${done}${rest}${request}`;
}

/** What was in the way of a refused entry, in a line. */
export function blameWords(entry) {
  const { holder } = entry;
  // A service's message is its own sentence, and the cause in brackets.
  const cause = /\[latchfs: (.*)\]/.exec(entry.message)?.[1];
  if (!holder || typeof holder === 'string' || !holder.access) return (cause ? clientFirst(cause) : entry.message) || (holder ? `held by ${holderWords(holder)}` : '');
  const who = clientName(holder) || `handle ${holder.handle}`;
  const since = holder.since ? `, since ${holder.since.slice(11, 19)}` : '';
  return `${who} has it open: access ${holder.access}, shares ${holder.share_mode}${since}`;
}

/** A user agent's first product, without its version. */
export function shortAgent(agent) {
  return (agent ?? '').split(/[\s/(]/, 1)[0].replace(/^azsdk-/, '');
}

const WORDS = {
  granted: 'opened', closed: 'closed', 'force-closed': 'force-closed', 'delete-pending': 'delete pending',
  undeleted: 'undeleted', removed: 'removed', 'share-changed': 'share mode changed', gated: 'stopped at gate',
  released: 'went on', abandoned: 'ended at the gate', fault: 'met a fault',
};

/** What stands before a user agent where a client is named. */
export const AGENT = 'agent ';

/** Events that concern the server as a whole: a line across the timeline. */
const GLOBAL = /^(clock|state|gate-|fault-|reset|page$|server)/;

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
const isToldTwice = (row) => row.event === 'refused' && !(row.pid > 0) && /^REST /.test(row.client ?? '');

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
    who: isGlobal ? (row.client ?? '').replace(/ through the (HTTP API|control socket)$/, '') : clientName(row),
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
  entry.search = `${entry.operation} ${entry.target} ${entry.who} ${entry.code ?? ''} ${entry.rule ?? ''} ${entry.kind} ${status ?? ''} ${row.user_agent ?? ''} ${row.client_request ?? ''} ${entry.message}`.toLowerCase();
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
  lost = 0;
  /** How many events have arrived as they happened. */
  arrived = 0;
  /** How many lines were dropped from the front since the list last asked. */
  droppedLines = 0;
  filter = { text: '', service: '', client: '', refusals: false };
  #held = [];
  /** How many connections of each user agent have had one request. */
  #singles = new Map();
  /** Refusals whose requests are not answered yet, by client. */
  #refusals = new Map();
  #order = 0;
  #changed;
  #now;

  /** `changed()` is called after each change; `now()` is the system's time on the server. */
  constructor(changed, now) {
    this.#changed = changed;
    this.#now = now;
  }

  /** Events that arrived while the log was paused. */
  get held() {
    return this.#held.length;
  }

  add(rows) {
    if (this.#now() - moment(rows[rows.length - 1].system ?? rows[rows.length - 1].time) < HISTORY_MS) this.arrived += rows.length;
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
  restarted() {
    this.gated.clear();
  }

  setFilter(change) {
    Object.assign(this.filter, change);
    this.filter.text = this.filter.text.trim().toLowerCase();
    this.visible = this.entries.filter((entry) => this.matches(entry));
    this.lines = [];
    for (const entry of this.visible) this.#addLines(entry);
    this.droppedLines = 0;
    this.#changed();
  }

  get filtered() {
    const { text, service, client, refusals } = this.filter;
    return Boolean(text || service || client || refusals);
  }

  matches(entry) {
    const { text, service, client, refusals } = this.filter;
    return (!refusals || entry.failed)
      && (!service || entry.service === service)
      && (!client || entry.who === client || (client.startsWith(AGENT) && entry.agent === client.slice(AGENT.length)))
      && (!text || text.split(/\s+/).every((word) => entry.search.includes(word)));
  }

  #append(rows) {
    for (const row of rows) {
      if (isToldTwice(row)) {
        this.#refusals.set(clientName(row), row);
        if (this.#refusals.size > CLIENTS_MAX) this.#refusals.delete(this.#refusals.keys().next().value);
        continue;
      }
      const entry = entryOf(this.#withRule(row));
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

  /** An answer with what the log of refusals told of its request: the rule, and who was in the way. */
  #withRule(row) {
    if (row.event !== 'request') return row;
    const who = clientName(row);
    const told = this.#refusals.get(who);
    if (!told) return row;
    this.#refusals.delete(who);
    if (!(row.status >= 400)) return row;
    const { rule, holder, message } = told;
    return { ...row, refusal: { message, ...row.refusal, rule: row.refusal?.rule ?? rule, holder: row.refusal?.holder ?? holder } };
  }

  #addLines(entry) {
    this.lines.push(entry);
    if (entry.refused && (entry.holder || entry.message)) this.lines.push({ below: entry });
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
    const key = `${entry.who} ${entry.row.client_request ?? ''}`;
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

  /** True if connections of this user agent have one request each: they are told apart by nothing. */
  #shares(agent) {
    return (this.#singles.get(agent) ?? 0) > (agent === COMMANDS ? 1 : SINGLES_MAX);
  }

  /** The lane of an entry: its client, or its user agent if each request has its own connection. */
  laneOf(entry) {
    const known = this.clients.get(entry.who);
    if (entry.agent && (known?.requests ?? 0) < 2 && this.#shares(entry.agent)) {
      return { name: entry.agent, about: 'a connection each', order: Infinity };
    }
    return { name: entry.who, about: known?.agent ?? '', order: known?.order ?? Infinity };
  }

  /** The clients to choose from: a value for the filter and a name each. */
  choices() {
    const choices = [];
    for (const [name, { requests, agent }] of this.clients) {
      if (requests !== 1 || !this.#shares(agent)) choices.push([name, agent ? `${name}  ${agent}` : name]);
    }
    for (const agent of this.#singles.keys()) choices.push([AGENT + agent, `${agent}, all connections`]);
    return choices;
  }
}
