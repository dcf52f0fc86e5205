// The tabs: what is open, locked, leased, marked for deletion, invisible. Decides what each list
// shows and which buttons its rows have; gates, faults and states are in bench.js.

import { change } from './api.js';
import { button, count, countdown, el, emptyState, refusedState, say, span } from './dom.js';
import { VirtualList } from './list.js';
import { clientName, holderWords } from './log.js';
import { LocksPanel } from './locks.js';

/** A list of rows with an empty state and a line for what the server left out. */
export class RowsPanel {
  #list;
  #note = el('p', { class: 'left-out', role: 'status' });
  #empty = el('div', { class: 'empty' });
  #host = el('div', { class: 'list' });
  #options;

  /** `options`: those of `VirtualList`, and `empty(node)`, `height`. */
  constructor(host, options) {
    this.#options = options;
    this.#list = new VirtualList(this.#host, { height: () => 48, ...options });
    options.empty(this.#empty);
    host.append(this.#host, this.#empty, this.#note);
  }

  draw(rows, { total, leftOut, refused }) {
    this.#host.hidden = rows.length === 0;
    this.#empty.hidden = rows.length > 0;
    if (rows.length === 0) {
      const state = refused ?? (total > 0 ? 'filtered' : 'none');
      if (this.#empty.dataset.state !== state) {
        this.#empty.dataset.state = state;
        if (refused) refusedState(this.#empty, refused);
        else if (total > 0) emptyState(this.#empty, 'Nothing here matches the filters.', '');
        else this.#options.empty(this.#empty);
      }
    }
    say(this.#note, leftOut > 0 ? `The server has ${count(leftOut)} more; use the command line with a path to see these.` : '');
    this.#list.show(rows);
  }

  /** Draws the rows in view again: time has passed. */
  tick() {
    this.#list.draw();
  }
}

const cell = (name, ...children) => el('div', { class: name, role: 'cell' }, ...children);

/** A row with two lines of text, chips and a button. `act(item)` runs on the button. */
function makeRow(label, act, danger = true) {
  return () => {
    const row = el('div', { class: 'item' },
      cell('main', el('div', { class: 'line1' }, el('span', { class: 'mono name' }), el('span', { class: 'flags' })), el('div', { class: 'line2' })),
      cell('chips'),
      cell('act'));
    if (label) row.lastChild.append(button(label, () => act(row.item), { class: danger ? 'danger small' : 'small' }));
    return row;
  };
}

function fillRow(row, item, { name, title, flags = '', line2, chips, label }) {
  row.item = item;
  const [main, chipCell, act] = row.children;
  const [nameNode, flagNode] = main.firstChild.children;
  say(nameNode, name);
  if (nameNode.title !== (title ?? name)) nameNode.title = title ?? name;
  say(flagNode, flags);
  say(main.lastChild, line2);
  const text = chips.map((chip) => chip.join('\u0000')).join('\u0001');
  if (chipCell.dataset.text !== text) {
    chipCell.dataset.text = text;
    chipCell.replaceChildren(...chips.map(([value, caption, tone]) => el('span', { class: `chip ${tone ?? ''}` }, el('small', {}, caption), value)));
  }
  const node = act.firstElementChild;
  if (node && label) node.setAttribute('aria-label', label);
}

const ago = (row) => span((row.seconds ?? 0) * 1000 + performance.now() - row.read);

function handlesPanel(host, context) {
  return new RowsPanel(host, {
    label: 'Open handles',
    key: (row) => row.handle,
    make: makeRow('Close', async (row) => {
      if (await change('DELETE', `handles/${row.handle}?share=${encodeURIComponent(row.share)}`, undefined, `Handle ${row.handle} on ${row.path} was closed.`)) context.refresh(['handles', 'locks', 'pending']);
    }),
    fill: (row, item) => {
      const who = item.pid > 0 ? `${item.program ?? 'ended process'} (pid ${item.pid})` : item.program ?? item.client.replace(/^REST /, '');
      fillRow(row, item, {
        name: item.share + item.path,
        title: `${item.share}${item.path}\nhandle ${item.handle}, ${item.client}, since ${item.since}`,
        flags: [item.delete_pending ? 'delete pending' : '', item.delete_on_close ? 'delete on close' : ''].filter(Boolean).join(' · '),
        line2: `${who} · ${item.pid > 0 ? `${item.client.replace(/^mount .*\//, 'mount ')} · ` : ''}${ago(item)}`,
        chips: [[item.access, 'access'], [item.share_mode, 'shares', item.share_mode === 'none' ? 'strong' : '']],
        label: `Force-close handle ${item.handle} on ${item.path}, held by ${who}`,
      });
    },
    empty: (node) => emptyState(node, 'Nothing is open.', 'Hold a file open without sharing it, and watch who is refused:', ['echo hello > latchfs-mnt/a.txt', 'latchfs hold latchfs-mnt/a.txt --share none --for 60s']),
  });
}

const leaseTone = (state) => ({ leased: 'on', breaking: 'warn' }[state] ?? '');

function timeChip(left, longest) {
  if (left === null) return ['∞', 'left'];
  return [countdown(left), 'left', left <= Math.min(5, longest / 4) ? 'warn' : ''];
}

function leasesPanel(host, context) {
  return new RowsPanel(host, {
    label: 'Leases',
    key: (row) => `${row.account} ${row.object}`,
    make: makeRow('Break', async (row) => {
      // Leases of files end at once and take no period.
      const body = row.object.startsWith('file:') ? { object: row.object } : { object: row.object, period: 0 };
      if (await change('POST', 'leases/break', body, `The lease of ${row.object} was broken.`)) context.refresh(['leases']);
    }),
    fill: (row, item) => {
      const left = context.state.left(item);
      const active = ['leased', 'breaking'].includes(item.state);
      fillRow(row, item, {
        name: item.object,
        line2: [item.holder ? holderWords(item.holder) : '', item.duration ? `${item.duration} lease` : '', item.id].filter(Boolean).join(' · '),
        chips: [[item.state, 'state', leaseTone(item.state)], active ? timeChip(left, item.longest) : ['–', 'left']],
        label: `Break the lease of ${item.object}`,
      });
      row.lastChild.firstElementChild.hidden = !active;
      meter(row, active && left !== null ? left / item.longest : null);
    },
    empty: (node) => emptyState(node, 'Nothing is leased.', 'Leases of blobs, containers, files and shares show their time here, by the server\u2019s clock. In Python:', ['blob.acquire_lease(lease_duration=60)']),
  });
}

/** The part of a time that is left, as a line below the row. */
function meter(row, part) {
  let line = row.querySelector('.meter');
  if (part === null) {
    line?.remove();
    return;
  }
  if (!line) {
    line = el('div', { class: 'meter', 'aria-hidden': 'true' }, el('i'));
    row.append(line);
  }
  line.firstChild.style.transform = `scaleX(${Math.min(1, Math.max(0, part)).toFixed(4)})`;
}

function pendingPanel(host, context) {
  return new RowsPanel(host, {
    label: 'Files marked for deletion',
    key: (row) => `${row.account} ${row.share} ${row.path}`,
    make: makeRow('Undelete', async (row) => {
      if (await change('POST', 'undelete', { share: row.share, path: row.path }, `${row.path} is no longer marked for deletion.`)) context.refresh(['pending', 'handles']);
    }, false),
    fill: (row, item) => {
      const handles = item.handles ?? [];
      const holders = handles.map((handle) => {
        const known = typeof handle === 'object' ? handle : context.state.data.handles.find((one) => one.handle === handle);
        return known ? clientName(known) : `handle ${handle}`;
      });
      fillRow(row, item, {
        name: `${item.share}${item.path}`,
        line2: `removed when ${holders.length > 0 ? holders.slice(0, 3).join(', ') : 'the last handle'} ${holders.length > 1 ? 'close' : 'closes'}${holders.length > 3 ? ` and ${holders.length - 3} more close` : ''}`,
        chips: [[String(handles.length), handles.length === 1 ? 'handle' : 'handles']],
        label: `Undelete ${item.path}`,
      });
    },
    empty: (node) => emptyState(node, 'No file waits for its last handle to close.', 'A file that is deleted while it is open stays until then, and refuses new opens. Try:', ['latchfs hold latchfs-mnt/a.txt --share rwd --for 60s &', 'rm latchfs-mnt/a.txt']),
  });
}

function messagesPanel(host, context) {
  return new RowsPanel(host, {
    label: 'Invisible messages',
    key: (row) => `${row.account} ${row.object}`,
    make: makeRow(null),
    fill: (row, item) => {
      const left = context.state.left(item);
      fillRow(row, item, {
        name: item.object,
        line2: item.holder ? `taken by ${holderWords(item.holder)}` : 'put with a delay',
        chips: [[String(item.dequeue_count), 'taken', item.dequeue_count > 1 ? 'warn' : ''], timeChip(left, item.longest ?? 1)],
      });
      meter(row, left !== null ? left / (item.longest ?? 1) : null);
    },
    empty: (node) => emptyState(node, 'No message is invisible.', 'A message that a client took comes back when its time is over. Try:', ['latchfs mk queue:jobs', 'echo hello | latchfs put queue:jobs', 'latchfs get queue:jobs']),
  });
}

/** The tabs of this file: id, name, the list they show, which service it belongs to. */
export const STATE_TABS = [
  { id: 'handles', name: 'Open', make: handlesPanel, service: () => 'file' },
  { id: 'locks', name: 'Locks', make: (host, context) => new LocksPanel(host, context), service: () => 'file' },
  { id: 'leases', name: 'Leases', make: leasesPanel, service: (row) => row.object.split(':', 1)[0].replace('share', 'file') },
  { id: 'pending', name: 'Deleting', make: pendingPanel, service: () => 'file' },
  { id: 'messages', name: 'Messages', make: messagesPanel, service: () => 'queue' },
];

/** A function that tells whether a row of tab `tab` passes the filters. */
export function rowFilter(tab, { text, service, client }) {
  const words = text.split(/\s+/).filter(Boolean);
  return (row) => (!service || tab.service(row) === service)
    && (!client || clientName(row) === client || holderWords(row.holder).startsWith(client))
    && (words.length === 0 || matches(row, words));
}

function matches(row, words) {
  const text = `${row.share ?? ''}${row.path ?? ''} ${row.object ?? ''} ${row.program ?? ''} ${row.pid ?? ''} ${row.client ?? ''} ${row.owner ?? ''} ${row.handle ?? ''} ${row.id ?? ''} ${holderWords(row.holder)}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

