// The list of events and the details of one. Decides how an event is written down; which events
// there are is decided in log.js.

import { change } from './api.js';
import { $, button, clockTime, count, el, emptyState, plural, say, span } from './dom.js';
import { VirtualList } from './list.js';
import { blameWords, gatedTime, moment, outcome, withAgent } from './log.js';

/** The rate is the mean of this many milliseconds. */
const RATE_MS = 2000;

let rowsMade = 0;

function makeRow() {
  const cell = (name) => el('span', { class: name, role: 'gridcell' });
  return el('div', { class: 'event', id: `event-row-${rowsMade += 1}` }, cell('at mono'), cell('service'), cell('who'), cell('what'), cell('outcome'), cell('took mono'));
}

/** The line below a refusal: what was in the way. */
function fillBelow(row, entry, selected) {
  const name = `event row below${entry === selected ? ' selected' : ''}`;
  if (row.className !== name) row.className = name;
  row.setAttribute('aria-selected', String(entry === selected));
  row.entry = entry;
  const [at, service, who, what, out, took] = row.children;
  for (const cell of [at, service, who, out, took]) say(cell, '');
  at.title = '';
  who.title = '';
  const text = blameWords(entry);
  if (what.dataset.text !== text) {
    what.dataset.text = text;
    what.textContent = text;
  }
}

/** What the server's clock showed at an event, where that was another time than the system's. */
function serverTime({ at, row }) {
  const server = moment(row.time);
  return Math.abs(server - at) >= 500 ? `Server clock: ${clockTime(server)}` : '';
}

function fillRow(row, line, selected) {
  if (line.below) {
    fillBelow(row, line.below, selected);
    return;
  }
  const entry = line;
  const [at, service, who, what, out, took] = row.children;
  const tone = entry.isGlobal ? ' across' : entry.refused ? ' refused' : entry.failed ? ' failed' : ['gated', 'released', 'abandoned', 'fault'].includes(entry.kind) ? ' held' : '';
  const name = `event row${tone}${entry === selected ? ' selected' : ''}`;
  if (row.className !== name) row.className = name;
  row.setAttribute('aria-selected', String(entry === selected));
  row.entry = entry;
  say(at, clockTime(entry.at));
  at.title = serverTime(entry);
  say(service, entry.service);
  service.dataset.service = entry.service;
  const named = withAgent(entry.who, entry.agent);
  if (who.title !== named) {
    who.title = named;
    who.replaceChildren(entry.who, el('small', {}, entry.agent && entry.agent !== entry.who ? ` ${entry.agent}` : ''));
  }
  const where = entry.target ? ` ${entry.target}` : '';
  if (what.dataset.text !== entry.operation + where) {
    what.dataset.text = entry.operation + where;
    what.replaceChildren(el('b', {}, entry.operation), el('span', { class: 'mono target' }, where));
  }
  say(out, entry.isGlobal ? '' : outcome(entry));
  say(took, entry.isEnd ? span(entry.end - entry.start) : '');
}

export class Stream {
  selected = null;
  #log;
  #list;
  #hooks;
  #rates = [];

  /** `hooks`: `select(entry)`, `filter(change)`, `refresh()`. */
  constructor(log, hooks) {
    this.#log = log;
    this.#hooks = hooks;
    const host = $('events-list');
    this.#list = new VirtualList(host, {
      label: 'Events, newest last',
      role: 'grid',
      follow: true,
      key: (line) => line,
      height: () => Number.parseInt(getComputedStyle(host).getPropertyValue('--row'), 10) || 26,
      make: makeRow,
      fill: (row, line) => {
        fillRow(row, line, this.selected);
        if (line === this.selected) host.setAttribute('aria-activedescendant', row.id);
      },
      onScroll: () => this.#buttons(),
    });
    host.addEventListener('click', (event) => {
      const row = event.target.closest('.row');
      if (row) this.#hooks.select(row.entry === this.selected ? null : row.entry);
    });
    host.addEventListener('keydown', (event) => this.#key(event));
    $('events-latest').addEventListener('click', () => { this.#list.follow(); this.#buttons(); });
    emptyState($('events-empty'), '', '');
  }

  #key(event) {
    const { visible } = this.#log;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || visible.length === 0) return;
    event.preventDefault();
    const now = visible.indexOf(this.selected);
    const from = now < 0 ? (step > 0 ? -1 : visible.length) : now;
    const next = Math.min(visible.length - 1, Math.max(0, from + step));
    this.#hooks.select(visible[next]);
    this.#list.reveal(this.#log.lines.indexOf(visible[next]));
  }

  /** Shows the details of `entry`, or none. */
  select(entry) {
    this.selected = entry;
    if (!entry) $('events-list').removeAttribute('aria-activedescendant');
    this.#detail(entry);
    if (entry) {
      this.#list.follow(false);
      const index = this.#log.lines.indexOf(entry);
      if (index >= 0) this.#list.reveal(index);
    }
    this.#list.draw();
  }

  draw() {
    const log = this.#log;
    this.#list.show(log.lines, log.droppedLines);
    log.droppedLines = 0;
    say($('events-count'), log.filtered ? `${count(log.visible.length)} of ${count(log.entries.length)}` : count(log.entries.length));
    const lost = $('events-lost');
    lost.hidden = log.lost === 0;
    if (log.lost > 0) say(lost, `${plural(log.lost, 'event')} lost`);
    lost.title = 'The server dropped these events before this page could read them';
    this.#empty();
    this.#buttons();
    this.rate();
  }

  /** Shows how many events a second arrive. */
  rate() {
    const now = performance.now();
    this.#rates.push([now, this.#log.arrived]);
    while (this.#rates.length > 2 && now - this.#rates[0][0] > RATE_MS) this.#rates.shift();
    const [then, arrived] = this.#rates[0];
    const rate = now > then ? Math.max(0, Math.round(((this.#log.arrived - arrived) * 1000) / (now - then))) : 0;
    say($('events-rate'), rate > 0 && now - then > 300 ? `${count(rate)} / s` : '');
  }

  #buttons() {
    const pause = $('pause');
    const { paused, held } = this.#log;
    say(pause, paused ? `Resume${held > 0 ? ` (${count(held)} new)` : ''}` : 'Pause');
    pause.setAttribute('aria-pressed', String(paused));
    $('events-latest').hidden = this.#list.following || this.#log.visible.length === 0;
  }

  #empty() {
    const node = $('events-empty');
    const log = this.#log;
    node.hidden = log.visible.length > 0;
    $('events-list').classList.toggle('is-empty', log.visible.length === 0);
    const state = log.filtered && log.entries.length > 0 ? 'filtered' : 'none';
    if (node.hidden || node.dataset.state === state) return;
    node.dataset.state = state;
    if (state === 'filtered') emptyState(node, 'No event matches the filters.', '');
    else emptyState(node, 'No requests yet.', 'Requests, refusals and who stood in the way appear here as they happen. Try:', ['latchfs mk blob:docs', 'echo hello | latchfs put blob:docs/a.txt']);
  }

  #detail(entry) {
    const node = $('detail');
    node.hidden = entry === null;
    if (entry === null) return;
    const { row } = entry;
    const actions = [];
    const holder = entry.holder;
    if (holder?.handle) {
      actions.push(button('Force-close the holder', async () => {
        if (await change('DELETE', `handles/${holder.handle}${row.share ? `?share=${encodeURIComponent(row.share)}` : ''}`, undefined, `Handle ${holder.handle} was closed.`)) this.#hooks.refresh();
      }, { class: 'danger' }));
    }
    if (entry.target) actions.push(button('Only this path', () => this.#hooks.filter({ text: entry.target })));
    if (entry.who && !entry.isGlobal) actions.push(button('Only this client', () => this.#hooks.filter({ client: entry.who })));
    actions.push(button('×', () => this.#hooks.select(null), { class: 'quiet', 'aria-label': 'Close the details' }));
    node.replaceChildren(
      el('header', {}, el('h3', {}, entry.operation, ' ', el('span', { class: 'mono' }, entry.target)), el('span', { class: 'spring' }), ...actions),
      entry.message ? el('p', { class: 'why' }, entry.message) : '',
      entry.gates.length > 0 ? el('p', { class: 'muted' }, `Stopped at gates for ${span(gatedTime(entry))}.`) : '',
      el('dl', {}, ...fields(row)),
    );
  }
}

/** Fields that come first in the details. */
const FIRST = ['event', 'operation', 'object', 'path', 'client', 'program', 'pid', 'status', 'code', 'rule', 'errno', 'system', 'time', 'started', 'duration_us', 'user_agent', 'client_request'];

/** The fields of a row, those of objects in it named `holder.pid`; each value is shown once. */
function fields(row, prefix = '', above = {}) {
  const rank = ([name]) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return Object.entries(row).sort((a, b) => rank(a) - rank(b)).flatMap(([name, value]) => {
    if (value === null || value === undefined || value === '' || name === 'message' || above[name] === value) return [];
    if (typeof value === 'object' && !Array.isArray(value)) return fields(value, `${prefix}${name}.`, row);
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return [el('div', {}, el('dt', {}, prefix + name), el('dd', { class: 'mono' }, text))];
  });
}
