// The sections: what is open, locked, leased, marked for deletion, invisible. Decides what each list
// shows and which buttons its rows have; gates, faults and states are in bench.js.

import { change } from './api.js';
import { button, countdown, el, say, span } from './dom.js';
import { VirtualList } from './list.js';
import { clientName, holderWords } from './log.js';
import { LocksPanel } from './locks.js';

/** The height of a row, in pixels. */
const ROW = 48;

/** A list of rows of one height, as tall as its rows up to a bound. */
export class RowsPanel {
  #list;
  #host = el('div', { class: 'list' });
  #section;
  #context;
  #rows = [];
  #marked = null;

  constructor(host, context, section) {
    this.#section = section;
    this.#context = context;
    const { label, key } = section;
    this.#list = new VirtualList(this.#host, { label, key, height: () => ROW, make: () => this.#make(), fill: (row, item) => this.#fill(row, item) });
    host.append(this.#host);
  }

  /** A row has two lines of text, chips and a button. */
  #make() {
    const row = el('div', { class: 'item' },
      cell('main', el('div', { class: 'line1' }, el('span', { class: 'mono name' }), el('span', { class: 'flags' })), el('div', { class: 'line2' })),
      cell('chips'),
      cell('act'));
    const { action, act } = this.#section;
    const run = async () => {
      const [call, said, lists] = act(row.item);
      if (await change(call[0], call[1], call[2], said)) this.#context.refresh(lists);
    };
    if (action) row.lastChild.append(button(action, run, { class: `small ${action === 'Undelete' ? '' : 'danger'}` }));
    return row;
  }

  #fill(row, item) {
    row.item = item;
    const { name, title = name, flags = '', line2, chips, label, idle = false, left = 0 } = this.#section.row(item, this.#context.state);
    const [main, chipCell, act] = row.children;
    const [nameNode, flagNode] = main.firstChild.children;
    say(nameNode, name);
    if (nameNode.title !== title) nameNode.title = title;
    say(flagNode, flags);
    say(main.lastChild, line2);
    const text = JSON.stringify(chips);
    if (chipCell.dataset.text !== text) {
      chipCell.dataset.text = text;
      chipCell.replaceChildren(...chips.map(([value, caption, tone]) => el('span', { class: `chip ${tone ?? ''}` }, el('small', {}, caption), value)));
    }
    act.firstElementChild?.setAttribute('aria-label', label);
    act.hidden = idle;
    // The part of a time that is left, as a line below the row.
    row.style.setProperty('--left', Math.min(1, Math.max(0, left)).toFixed(4));
    row.classList.toggle('marked', this.#section.key(item) === this.#marked);
  }

  draw(rows) {
    this.#rows = rows;
    this.#host.style.height = `${rows.length * ROW}px`;
    this.#list.show(rows);
  }

  /** Marks the row with that key and scrolls to it. False if there is none. */
  mark(key) {
    this.#marked = key;
    const index = this.#rows.findIndex((row) => this.#section.key(row) === key);
    if (index >= 0) this.#list.reveal(index);
    return index >= 0;
  }

  /** Draws the rows in view again: time has passed. */
  tick() { this.#list.draw(); }
}

const cell = (name, ...children) => el('div', { class: name, role: 'cell' }, ...children);

const ago = (row) => span((row.seconds ?? 0) * 1000 + performance.now() - row.read);

function timeChip(left, longest) {
  if (left === null) return ['∞', 'left'];
  return [countdown(left), 'left', left <= Math.min(5, longest / 4) ? 'warn' : ''];
}

/**
 * The sections that list what is held, one after the other. `row(item, state)` gives what a row
 * shows, `act(item)` what its button does: a call of the API, what is said then, the lists it changes.
 */
export const STATE_SECTIONS = [{
  id: 'handles', name: 'Open', label: 'Open handles', service: () => 'file',
  key: (row) => row.handle,
  action: 'Close',
  act: ({ handle, share, path }) => [['DELETE', `handles/${handle}?share=${encodeURIComponent(share)}`], `Handle ${handle} on ${path} was closed.`, ['handles', 'locks', 'pending']],
  row: (item) => {
    const who = item.pid > 0 ? `${item.program ?? 'ended process'} (pid ${item.pid})` : clientName(item);
    return {
      name: item.share + item.path,
      title: `${item.share}${item.path}\nhandle ${item.handle}, ${item.client}`,
      flags: [item.delete_pending ? 'delete pending' : '', item.delete_on_close ? 'delete on close' : ''].filter(Boolean).join(' · '),
      line2: `${who} · ${item.pid > 0 ? `${item.client.replace(/^mount .*\//, 'mount ')} · ` : ''}${ago(item)}`,
      chips: [[item.access, 'access'], [item.share_mode, 'shares', item.share_mode === 'none' ? 'strong' : '']],
      label: `Force-close handle ${item.handle} on ${item.path}, held by ${who}`,
    };
  },
  empty: ['Nothing is open.', 'Hold a file open without sharing it, and watch who is refused:', ['echo hello > latchfs-mnt/a.txt', 'latchfs hold latchfs-mnt/a.txt --share none --for 60s']],
}, {
  id: 'locks', name: 'Locks', service: () => 'file',
  make: (host) => new LocksPanel(host),
  empty: ['No byte range is locked.', 'Locks that programs take on the mount are drawn here over the file. Try:', ['sqlite3 latchfs-mnt/a.db "begin exclusive; create table t(x);" ".shell sleep 30"']],
}, {
  id: 'leases', name: 'Leases', label: 'Leases', service: (row) => row.object.split(':', 1)[0].replace('share', 'file'),
  key: (row) => `${row.account} ${row.object}`,
  action: 'Break',
  // Leases of files end at once and take no period.
  act: ({ object }) => [['POST', 'leases/break', object.startsWith('file:') ? { object } : { object, period: 0 }], `The lease of ${object} was broken.`, ['leases']],
  row: (item, state) => {
    const active = ['leased', 'breaking'].includes(item.state);
    const left = active ? state.left(item) : null;
    return {
      name: item.object,
      line2: [holderWords(item.holder), item.duration ? `${item.duration} lease` : '', item.id].filter(Boolean).join(' · '),
      chips: [[item.state, 'state', { leased: 'on', breaking: 'warn' }[item.state] ?? ''], active ? timeChip(left, item.longest) : ['–', 'left']],
      label: `Break the lease of ${item.object}`,
      idle: !active,
      left: left === null ? 0 : left / item.longest,
    };
  },
  empty: ['Nothing is leased.', 'Leases of blobs, containers, files and shares show their time here, by the server\u2019s clock. In Python:', ['blob.acquire_lease(lease_duration=60)']],
}, {
  id: 'pending', name: 'Deleting', label: 'Files marked for deletion', service: () => 'file',
  key: (row) => `${row.account} ${row.share} ${row.path}`,
  action: 'Undelete',
  act: ({ share, path }) => [['POST', 'undelete', { share, path }], `${path} is no longer marked for deletion.`, ['pending', 'handles']],
  row: (item) => {
    const holders = item.handles.map(clientName);
    return {
      name: `${item.share}${item.path}`,
      line2: `removed when ${holders.length > 0 ? holders.slice(0, 3).join(', ') : 'the last handle'} ${holders.length > 1 ? 'close' : 'closes'}${holders.length > 3 ? ` and ${holders.length - 3} more close` : ''}`,
      chips: [[String(holders.length), holders.length === 1 ? 'handle' : 'handles']],
      label: `Undelete ${item.path}`,
    };
  },
  empty: ['No file waits for its last handle to close.', 'A file that is deleted while it is open stays until then, and refuses new opens. Try:', ['latchfs hold latchfs-mnt/a.txt --share rwd --for 60s &', 'rm latchfs-mnt/a.txt']],
}, {
  id: 'messages', name: 'Messages', label: 'Invisible messages', service: () => 'queue',
  key: (row) => `${row.account} ${row.object}`,
  row: (item, state) => {
    const left = state.left(item);
    return {
      name: item.object,
      line2: item.holder ? `taken by ${holderWords(item.holder)}` : 'put with a delay',
      chips: [[String(item.dequeue_count), 'taken', item.dequeue_count > 1 ? 'warn' : ''], timeChip(left, item.longest ?? 1)],
      left: (left ?? 0) / (item.longest ?? 1),
    };
  },
  empty: ['No message is invisible.', 'A message that a client took comes back when its time is over. Try:', ['latchfs mk queue:jobs', 'echo hello | latchfs put queue:jobs', 'latchfs get queue:jobs']],
}];

/** True if a row of a section has every word of the filter. */
export function matchesRow(section, row, text) {
  const has = `${section.service(row)} ${row.share ?? ''}${row.path ?? ''} ${row.object ?? ''} ${clientName(row)} ${row.client ?? ''} ${row.owner ?? ''} ${row.handle ?? ''} ${row.id ?? ''} ${holderWords(row.holder)}`.toLowerCase();
  return text.split(/\s+/).every((word) => has.includes(word));
}
