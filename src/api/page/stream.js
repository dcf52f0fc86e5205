// The list of events and the details of one. Decides how an event is written down; which events
// there are is decided in log.js.

import { change } from './api.js';
import { $, button, clockTime, count, el, emptyState, plural, say, span } from './dom.js';
import { VirtualList } from './list.js';
import { blame, connection, gatedTime, holderWords, moment, nameAndAgent, openFor, outcome, withAgent } from './log.js';

let rowsMade = 0;

function makeRow() {
  const cell = (name) => el('span', { class: name, role: 'gridcell' });
  return el('div', { class: 'event', id: `event-row-${rowsMade += 1}` }, cell('at mono'), cell('service'), cell('who'), cell('what'), cell('outcome'), cell('took mono'));
}

/** The lines below a refusal: who was in the way, as a link to them, and what they did. */
function fillBelow(row, { below: entry, part, lines }, selected) {
  const name = `event row ${part > 0 ? 'rest' : 'below'}${entry === selected ? ' selected' : ''}`;
  if (row.className !== name) row.className = name;
  row.style.setProperty('--lines', lines);
  row.setAttribute('aria-selected', String(entry === selected));
  row.entry = entry;
  const [at, service, who, what, out, took] = row.children;
  for (const cell of [at, service, who, out, took]) say(cell, '');
  at.title = '';
  who.title = '';
  const { who: client, name: named, what: did } = part > 0 ? { what: '' } : blame(entry);
  if (what.dataset.text === `below ${named}${did}`) return;
  what.dataset.text = `below ${named}${did}`;
  what.replaceChildren(client ? el('button', { type: 'button', class: 'link', title: 'Show what this client did' }, named) : '', did);
}

/** What the server's clock showed at an event, where that was another time than the system's. */
function serverTime({ at, row }) {
  const server = moment(row.time);
  return Math.abs(server - at) >= 500 ? `Server clock: ${clockTime(server)}` : '';
}

function fillRow(row, line, selected) {
  if (line.below) {
    fillBelow(row, line, selected);
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
    const [name, rest] = nameAndAgent(entry.who, entry.agent);
    who.replaceChildren(name, el('small', {}, rest ? ` ${rest}` : ''));
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

  /** `hooks`: `select(entry)`, `holder(entry)`, `filter(change)`, `refresh()`. */
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
      if (event.target.closest('.link')) this.#hooks.holder(row.entry);
      else if (row) this.#hooks.select(row.entry === this.selected ? null : row.entry);
    });
    host.addEventListener('keydown', (event) => this.#key(event));
    $('events-latest').addEventListener('click', () => { this.#list.follow(); this.#buttons(); });
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
    node.hidden = log.visible.length > 0 || !log.known;
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
    if (entry.refused && blame(entry).who) actions.push(button('Show the holder', () => this.#hooks.holder(entry)));
    if (holder?.handle) {
      actions.push(button('Force-close the holder', async () => {
        if (await change('DELETE', `handles/${holder.handle}${row.share ? `?share=${encodeURIComponent(row.share)}` : ''}`, undefined, `Handle ${holder.handle} was closed.`)) this.#hooks.refresh();
      }, { class: 'danger' }));
    }
    if (entry.target) actions.push(button('Only this path', () => this.#hooks.filter({ text: entry.target })));
    if (entry.who && !entry.isGlobal) actions.push(button('Only this client', () => this.#hooks.filter({ text: entry.who })));
    actions.push(button('×', () => this.#hooks.select(null), { class: 'quiet', 'aria-label': 'Close the details' }));
    node.replaceChildren(
      el('header', {}, el('h3', {}, entry.operation, ' ', el('span', { class: 'mono' }, entry.target)), el('span', { class: 'spring' }), ...actions),
      entry.message ? el('p', { class: 'why' }, entry.message) : '',
      el('dl', {}, ...facts(entry)),
    );
  }
}

/** What the fields of a row mean to a reader; fields that are told otherwise have no words. */
const WORDS = {
  object: 'Object', account: 'Account', user_agent: 'User agent', client_request: 'Request ID of the client', request_id: 'Request ID of the server', errno: 'Error on the mount',
  gate: 'Gate', at: 'Stops when', request: 'Request at gates', fault: 'Fault', handle: 'Handle', access: 'Access', share_mode: 'Shares', id: 'Number', detail: 'Change',
};

/** What is known of an event, in words, each once. All times of the page are the system's. */
function facts(entry) {
  const { row, holder, who } = entry;
  const server = serverTime(entry);
  const told = [
    ['Client', row.pid > 0 ? `${row.program ?? 'ended process'}, process ${row.pid}` : who],
    ['Through', connection(row) === who ? '' : connection(row)],
    [entry.isEnd ? 'Answered' : 'When', `${clockTime(entry.at)}${server ? ` (${server.toLowerCase()})` : ''}`],
    ['Took', entry.isEnd ? span(entry.end - entry.start) : ''],
    ['At gates for', entry.gates.length > 0 ? span(gatedTime(entry)) : ''],
    ['Outcome', entry.isGlobal ? '' : outcome(entry)],
    ['Rule', entry.rule?.replaceAll('_', ' ')],
    ['Held by', holder ? `${holderWords(holder)}${holder.handle ? `, handle ${holder.handle}${openFor(entry)}` : ''}` : ''],
    ['Released by', row.timed_out ? 'its time limit' : ''],
    ...Object.entries(WORDS).map(([name, words]) => [words, row[name]]),
  ];
  return told.filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', name === WORDS.user_agent ? { class: 'cut', title: value } : {}, String(value))));
}
