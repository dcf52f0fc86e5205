// Puts the page together: events in, drawings out at most once a frame, the filter, shortcuts.

import { note, session } from './api.js';
import { GatedStrip, operationsList } from './bench.js';
import { ClockBar } from './clock.js';
import { openConnect } from './connect.js';
import { $, el, plural, remember, remembered, say } from './dom.js';
import { Follower } from './follow.js';
import { Log } from './log.js';
import { Sections, SECTIONS } from './sections.js';
import { State } from './state.js';
import { Stream } from './stream.js';
import { Timeline } from './timeline.js';

/** How often running times are drawn. */
const TICK_MS = 200;

// --- One drawing a frame ------------------------------------------------------------------------

const dirty = new Set();
function later(what) {
  if (dirty.size === 0) requestAnimationFrame(drawAll);
  dirty.add(what);
}

function drawAll() {
  const wanted = new Set(dirty);
  dirty.clear();
  if (wanted.has('log')) {
    stream.draw();
    timeline.refresh();
    drawClients();
  }
  if (wanted.has('clock')) clock.draw();
  if (wanted.has('gates')) gated.draw();
  sections.draw(SECTIONS.filter(({ id }) => wanted.has(id) || wanted.has('filter')));
}

// --- The parts ----------------------------------------------------------------------------------

const log = new Log(() => later('log'), () => state.systemNow());
const state = new State((name) => later(name));
const context = { state, refresh: (names) => state.touch(names, true), confirm, rivalOf: (one) => log.rivalOf(one) };
const clock = new ClockBar(state);
const gated = new GatedStrip(context);
const stream = new Stream(log, { select, holder: showHolder, filter: setFilter, refresh: () => state.touch(undefined, true) });
const timeline = new Timeline(log, { select, now: () => state.systemNow() });
const sections = new Sections(context, log);

function select(entry) {
  stream.select(entry);
  timeline.select(entry);
}

/** Shows who was in the way of a refusal: what they did, in their lane, and their handle. */
function showHolder(entry) {
  const cause = log.causeOf(entry);
  if (cause) {
    select(cause);
    timeline.reveal(cause);
  }
  const { handle } = entry.holder ?? {};
  if (handle && !sections.markHandle(handle)) note(`Handle ${handle} is no longer open.`);
}

// --- Filter -------------------------------------------------------------------------------------

function setFilter(wanted) {
  if (wanted.text !== undefined && $('filter-text').value !== wanted.text) $('filter-text').value = wanted.text;
  if (wanted.refusals !== undefined) $('filter-refusals').checked = wanted.refusals;
  log.setFilter(wanted);
  $('filter-clear').hidden = !log.filtered;
  later('filter');
}

/** The clients that the field of the filter suggests. */
function drawClients() {
  const names = [...log.clients.keys()];
  if ($('clients').dataset.names === names.join()) return;
  $('clients').dataset.names = names.join();
  $('clients').replaceChildren(...names.map((value) => el('option', { value })));
}

const clearFilter = () => setFilter({ text: '', refusals: false });

$('filter-text').addEventListener('input', (event) => setFilter({ text: event.target.value }));
$('filter-refusals').addEventListener('change', (event) => setFilter({ refusals: event.target.checked }));
$('filter-clear').addEventListener('click', clearFilter);

// --- The server ---------------------------------------------------------------------------------

const LINK = { connecting: ['Connecting', ''], live: ['Live', 'good'], reconnecting: ['Reconnecting', 'warn'], token: ['Token needed', 'warn'] };
let link = 'connecting';
let firstLoss = true;

function showLink(now) {
  if (now === 'token') askToken();
  link = now;
  drawLink();
  state.connected(now === 'live');
  if (now === 'live' && !log.known) {
    log.known = true;
    later('log');
  }
  document.body.classList.toggle('offline', now !== 'live');
}

function drawLink() {
  const [text, tone] = log.paused && link === 'live' ? ['Paused', 'cold'] : LINK[link];
  say($('link'), text);
  $('link').className = `pill ${tone}`;
}

function showServer(status, restarted) {
  say($('server'), `${status.version} · pid ${status.pid}`);
  $('server').title = Object.entries(status.endpoints ?? {}).map(([name, url]) => `${name}: ${url}`).join('\n');
  state.setClock(status.clock);
  if (restarted) {
    firstLoss = true;
    log.restarted();
    log.add([{ event: 'page', time: new Date(state.systemNow()).toISOString(), text: 'the server was restarted' }]);
  }
  const accounts = status.accounts ?? [];
  $('account-field').hidden = accounts.length < 2;
  if (accounts.length > 1) session.account ??= accounts[0];
  if ($('account').options.length !== accounts.length) {
    $('account').replaceChildren(...accounts.map((name) => el('option', { value: name }, name)));
    $('account').value = session.account ?? accounts[0];
  }
}

function lose(n) {
  // What the server dropped before this page came was never this page's to show.
  if (firstLoss) log.add([{ event: 'page', time: new Date(state.systemNow()).toISOString(), text: `${plural(n, 'older event')} no longer kept` }]);
  else log.lost += n;
  firstLoss = false;
  later('log');
}

const follower = new Follower({
  link: showLink,
  server: showServer,
  lost: lose,
  events: (all) => {
    firstLoss = false;
    // The stream has all accounts; what concerns the server as a whole has none.
    const rows = all.filter(({ account }) => !account || !session.account || account === session.account);
    if (rows.length === 0) return;
    log.add(rows);
    state.touch();
    if (rows.some(({ event }) => /^(gated|released|abandoned|gate|clock|state)/.test(event))) state.touch(['gates', 'clock', 'faults', 'states'], true);
  },
});

async function askToken() {
  const dialog = $('token');
  if (dialog.open) return;
  dialog.showModal();
  dialog.addEventListener('close', () => {
    session.token = $('token-text').value.trim() || null;
    follower.restart();
  }, { once: true });
}

// --- Dialogs, pause, shortcuts ------------------------------------------------------------------

function confirm(title, text, yes) {
  const dialog = $('confirm');
  say($('confirm-title'), title);
  say($('confirm-text'), text);
  say($('confirm-yes'), yes);
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener('close', () => done(dialog.returnValue === 'yes'), { once: true }));
}

function pause() {
  log.pause(!log.paused);
  drawLink();
}

const KEYS = [
  ['p', 'Pause or resume the events', pause],
  ['/', 'Filter by text', () => $('filter-text').focus()],
  ['r', 'Only refusals, or all', () => setFilter({ refusals: !log.filter.refusals })],
  ['c', 'Clear the filter', clearFilter],
  ['g', 'Let the request go that has waited longest', () => gated.releaseFirst()],
  ['s', 'Connection string, and what is stored', openConnect],
  ['f', 'Freeze or run the clock', () => clock.freezeOrRun()],
  ['t', 'Go to the timeline', () => $('timeline-canvas').focus()],
  ['o', 'Timeline by order or by time', () => timeline.setAxis(document.querySelector('[data-axis="time"]').getAttribute('aria-checked') === 'true' ? 'steps' : 'time')],
  ['+', 'Zoom in', () => timeline.zoom(1)],
  ['-', 'Zoom out', () => timeline.zoom(-1)],
  ['e', 'Go to the events', () => $('events-list').focus()],
  ['?', 'This help', () => $('help').showModal()],
];

function listenKeys() {
  $('help-keys').append(
    ...KEYS.map(([key, text]) => el('div', {}, el('dt', {}, el('kbd', {}, key)), el('dd', {}, text))),
    el('div', {}, el('dt', {}, el('kbd', {}, '1'), '–', el('kbd', {}, String(SECTIONS.length))), el('dd', {}, `Unfold ${SECTIONS.map(({ name }) => name).join(', ')}`)),
    el('div', {}, el('dt', {}, el('kbd', {}, '←'), el('kbd', {}, '→'), el('kbd', {}, '↑'), el('kbd', {}, '↓')), el('dd', {}, 'In the timeline and the events: from one to the next')),
    el('div', {}, el('dt', {}, el('kbd', {}, 'Esc')), el('dd', {}, 'Close the details')),
  );
  const on = $('keys-on');
  on.checked = remembered('keys') !== 'off';
  on.addEventListener('change', () => remember('keys', on.checked ? 'on' : 'off'));
  $('help-open').addEventListener('click', () => $('help').showModal());
  $('connect-open').addEventListener('click', openConnect);
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    const typing = event.target.closest?.('input:not([type=checkbox]), select, textarea');
    if (event.key === 'Escape') {
      if (typing) event.target.blur();
      else select(null);
      return;
    }
    if (typing || !on.checked) return;
    const section = SECTIONS[Number(event.key) - 1];
    const found = KEYS.find(([key]) => key === event.key);
    if (!section && !found) return;
    event.preventDefault();
    if (section) sections.unfold(section.id);
    else found[2]();
  });
}

$('pause').addEventListener('click', pause);
$('events-clear').addEventListener('click', () => { select(null); log.clear(); });
$('account').addEventListener('change', (event) => {
  session.account = event.target.value;
  select(null);
  log.clear();
  follower.restart();
});
if (session.token) $('openapi').href += `?token=${encodeURIComponent(session.token)}`;
addEventListener('unhandledrejection', (event) => note(String(event.reason?.message ?? event.reason), 'bad'));

document.body.append(operationsList());
listenKeys();
later('log');
setInterval(() => {
  if (document.hidden) return;
  clock.draw();
  gated.draw();
  sections.tick();
}, TICK_MS);
