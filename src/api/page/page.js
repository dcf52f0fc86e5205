// Puts the page together: events in, drawings out at most once a frame, tabs, filters, shortcuts.

import { note, session } from './api.js';
import { BENCH_TABS, GatedStrip, operationsList } from './bench.js';
import { ClockBar } from './clock.js';
import { $, count, el, plural, remember, remembered, say } from './dom.js';
import { Follower } from './follow.js';
import { Log } from './log.js';
import { rowFilter, STATE_TABS } from './panels.js';
import { State } from './state.js';
import { Stream } from './stream.js';
import { Timeline } from './timeline.js';

/** How often running times are drawn. */
const TICK_MS = 200;
const TABS = [...STATE_TABS, ...BENCH_TABS];

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
  drawTabs();
  if (wanted.has(open) || wanted.has('filter')) drawPanel();
}

// --- The parts ----------------------------------------------------------------------------------

const log = new Log(() => later('log'), () => state.systemNow());
const state = new State((name) => later(name));
const context = { state, refresh: (names) => state.touch(names, true), confirm };
const clock = new ClockBar(state);
const gated = new GatedStrip(context);
const stream = new Stream(log, { select, filter: setFilter, refresh: () => state.touch(undefined, true) });
const timeline = new Timeline(log, { select, now: () => state.systemNow() });
const panels = new Map();
let open = 'handles';

function select(entry) {
  stream.select(entry);
  timeline.select(entry);
}

// --- Tabs ---------------------------------------------------------------------------------------

function makeTabs() {
  document.body.append(operationsList());
  for (const [i, tab] of TABS.entries()) {
    const host = el('div', { class: 'panel', role: 'tabpanel', id: `panel-${tab.id}`, 'aria-labelledby': `tab-${tab.id}`, hidden: true });
    $('panels').append(host);
    panels.set(tab.id, tab.make(host, context));
    if (tab.bench && !TABS[i - 1].bench) $('tabs').append(el('span', { class: 'tab-break', role: 'presentation' }));
    $('tabs').append(el('button', { type: 'button', role: 'tab', id: `tab-${tab.id}`, 'aria-controls': `panel-${tab.id}`, title: `${tab.name} (${i + 1})`, class: tab.bench ? 'bench-tab' : '', on: { click: () => showTab(tab.id) } }, tab.name, el('span', { class: 'count' })));
  }
  $('tabs').addEventListener('keydown', (event) => {
    const at = TABS.findIndex((tab) => tab.id === open);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    showTab(TABS[(next + TABS.length) % TABS.length].id, true);
  });
  const wanted = location.hash.slice(1);
  showTab(TABS.some((tab) => tab.id === wanted) ? wanted : 'handles');
}

function showTab(id, focus = false) {
  open = id;
  for (const tab of TABS) {
    const on = tab.id === id;
    const node = $(`tab-${tab.id}`);
    node.setAttribute('aria-selected', String(on));
    node.tabIndex = on ? 0 : -1;
    $(`panel-${tab.id}`).hidden = !on;
    if (on) {
      node.scrollIntoView({ block: 'nearest', inline: 'nearest' });
      if (focus) node.focus();
    }
  }
  history.replaceState(null, '', `${location.search}#${id}`);
  state.show(id);
  drawPanel();
}

function drawTabs() {
  for (const tab of TABS) {
    const rows = state.data[tab.id];
    const n = rows.length + (state.leftOut[tab.id] ?? 0);
    const node = $(`tab-${tab.id}`);
    say(node.lastChild, n > 0 ? count(n) : '');
    node.classList.toggle('is-zero', n === 0);
  }
}

function drawPanel() {
  const tab = TABS.find((one) => one.id === open);
  const rows = state.data[open];
  const shown = tab.bench || !log.filtered ? rows : rows.filter(rowFilter(tab, log.filter));
  panels.get(open).draw(shown, { total: rows.length, leftOut: state.leftOut[open] ?? 0, refused: state.refused[open] });
}

// --- Filters ------------------------------------------------------------------------------------

let shownClients = null;

function setFilter(wanted) {
  if (wanted.text !== undefined && $('filter-text').value !== wanted.text) $('filter-text').value = wanted.text;
  if (wanted.service !== undefined) $('filter-service').value = wanted.service;
  if (wanted.refusals !== undefined) $('filter-refusals').checked = wanted.refusals;
  log.setFilter(wanted);
  if (wanted.client !== undefined) {
    shownClients = null;
    drawClients();
    $('filter-client').value = wanted.client;
  }
  $('filter-clear').hidden = !log.filtered;
  later('filter');
}

function drawClients() {
  const node = $('filter-client');
  const choices = log.choices();
  const names = choices.map(([value]) => value).join('\n');
  if (shownClients === names || document.activeElement === node) return;
  shownClients = names;
  node.replaceChildren(el('option', { value: '' }, 'All clients'), ...choices.map(([value, name]) => el('option', { value }, name)));
  const { client } = log.filter;
  if (client && !choices.some(([value]) => value === client)) node.append(el('option', { value: client }, client));
  node.value = client;
}

function listenFilters() {
  $('filter-text').addEventListener('input', (event) => setFilter({ text: event.target.value }));
  $('filter-service').addEventListener('change', (event) => setFilter({ service: event.target.value }));
  $('filter-client').addEventListener('change', (event) => setFilter({ client: event.target.value }));
  $('filter-refusals').addEventListener('change', (event) => setFilter({ refusals: event.target.checked }));
  $('filter-clear').addEventListener('click', clearFilters);
}

function clearFilters() {
  setFilter({ text: '', service: '', client: '', refusals: false });
}

// --- The server ---------------------------------------------------------------------------------

const LINK = { connecting: ['Connecting', ''], live: ['Live', 'good'], reconnecting: ['Reconnecting', 'warn'], token: ['Token needed', 'warn'] };
let link = 'connecting';
let firstLoss = true;

function showLink(now) {
  if (now === 'token') askToken();
  link = now;
  drawLink();
  state.connected(now === 'live');
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
  ['c', 'Clear the filters', clearFilters],
  ['g', 'Let the request go that has waited longest', () => gated.releaseFirst()],
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
    el('div', {}, el('dt', {}, el('kbd', {}, '1'), '–', el('kbd', {}, String(TABS.length))), el('dd', {}, `Tabs: ${TABS.map((tab) => tab.name).join(', ')}`)),
    el('div', {}, el('dt', {}, el('kbd', {}, '←'), el('kbd', {}, '→'), el('kbd', {}, '↑'), el('kbd', {}, '↓')), el('dd', {}, 'In the timeline and the events: from one to the next')),
    el('div', {}, el('dt', {}, el('kbd', {}, 'Esc')), el('dd', {}, 'Close the details')),
  );
  const on = $('keys-on');
  on.checked = remembered('keys') !== 'off';
  on.addEventListener('change', () => remember('keys', on.checked ? 'on' : 'off'));
  $('help-open').addEventListener('click', () => $('help').showModal());
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    const typing = event.target.closest?.('input:not([type=checkbox]), select, textarea');
    if (event.key === 'Escape') {
      if (typing) event.target.blur();
      else select(null);
      return;
    }
    if (typing || !on.checked) return;
    const tab = TABS[Number(event.key) - 1];
    const found = KEYS.find(([key]) => key === event.key);
    if (!tab && !found) return;
    event.preventDefault();
    if (tab) showTab(tab.id, true);
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

makeTabs();
listenFilters();
listenKeys();
later('log');
setInterval(() => {
  if (document.hidden) return;
  clock.draw();
  gated.draw();
  stream.rate();
  panels.get(open).tick();
}, TICK_MS);
