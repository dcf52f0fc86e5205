// Byte-range locks, drawn as bars over the file. Decides the scale: byte offsets, with short ranges
// widened so that a lock of one byte can be seen beside one of a gigabyte.

import { count, el, svg } from './dom.js';

/** The most files, and locks of one file, that are drawn. */
const FILES_MAX = 60;
const LOCKS_MAX = 200;
/** The least width of a range between two boundaries, of 1000. */
const LEAST = 26;
const WIDE = 1000;

/** A scale from byte offsets to 0..1000. `locks` have `start` and `length`, null for no end. */
export function scaleOf(locks) {
  const marks = new Set([0]);
  for (const { start, length } of locks) {
    marks.add(start);
    if (length !== null) marks.add(start + length);
  }
  const offsets = [...marks].sort((a, b) => a - b);
  const endless = locks.some(({ length }) => length === null);
  const last = offsets[offsets.length - 1];
  const parts = offsets.slice(1).map((offset, i) => offset - offsets[i]);
  const locked = (from, to) => locks.some(({ start, length }) => start < to && (length === null || start + length > from));
  // Space before the first lock and between locks says little: it gets the least width if it is long.
  const weights = parts.map((part, i) => {
    const linear = (part / Math.max(1, last)) * WIDE;
    return locked(offsets[i], offsets[i + 1]) ? Math.max(LEAST, linear) : Math.min(Math.max(LEAST, linear), LEAST * 4);
  });
  if (endless || parts.length === 0) weights.push(WIDE / 6);
  const sum = weights.reduce((a, b) => a + b, 0);
  const places = [0];
  for (const weight of weights) places.push(places[places.length - 1] + (weight / sum) * WIDE);
  const at = new Map(offsets.map((offset, i) => [offset, places[i]]));
  return { at: (offset) => (offset === null ? WIDE : at.get(offset)), offsets, places };
}

const rangeWords = ({ start, length }) => (length === null ? `${count(start)} to the end` : length === 1 ? `byte ${count(start)}` : `${count(start)}–${count(start + length - 1)}`);

function offsetWords(n) {
  for (const [unit, size] of [['G', 2 ** 30], ['M', 2 ** 20], ['K', 1024]]) {
    if (n >= size && n % size === 0) return `${count(n / size)}${unit}`;
  }
  return count(n);
}

const ownerWords = (lock) => (lock.pid > 0 ? `${lock.program ?? 'process'} ${lock.pid}` : lock.owner ?? `handle ${lock.handle}`);

/** One file: a row for each owner, with a bar for each lock, and the offsets below. */
function drawFile(name, locks) {
  const shown = locks.slice(0, LOCKS_MAX);
  const scale = scaleOf(shown);
  const owners = new Map();
  for (const lock of shown) {
    const owner = ownerWords(lock);
    if (!owners.has(owner)) owners.set(owner, []);
    owners.get(owner).push(lock);
  }
  const rows = [...owners].map(([owner, held]) => el('div', { class: 'lock-row' },
    el('span', { class: 'lock-owner', title: owner }, owner),
    svg('svg', { viewBox: `0 0 ${WIDE} 18`, preserveAspectRatio: 'none', class: 'lock-bar', role: 'img', 'aria-label': `${owner}: ${held.map((lock) => `${rangeWords(lock)} ${lock.exclusive ? 'exclusive' : 'shared'}`).join(', ')}` },
      svg('rect', { x: 0, y: 0, width: WIDE, height: 18, class: 'lock-file' }),
      ...held.map((lock) => {
        const from = scale.at(lock.start);
        const to = scale.at(lock.length === null ? null : lock.start + lock.length);
        const bar = svg('rect', { x: from, y: 2, width: Math.max(2, to - from), height: 14, class: lock.exclusive ? 'lock exclusive' : 'lock shared' });
        bar.append(svg('title', {}));
        bar.firstChild.textContent = `${rangeWords(lock)}, ${lock.exclusive ? 'exclusive' : 'shared'}, ${owner}`;
        return bar;
      }))));
  return el('section', { class: 'lock-card' },
    el('h3', { class: 'mono' }, name),
    ...rows,
    axis(scale),
    el('ul', { class: 'lock-list' }, ...shown.slice(0, 8).map((lock) => el('li', {},
      el('span', { class: `dot ${lock.exclusive ? 'exclusive' : 'shared'}` }), el('span', { class: 'mono' }, rangeWords(lock)), ` ${lock.exclusive ? 'exclusive' : 'shared'}, ${ownerWords(lock)}`))),
    locks.length > 8 ? el('p', { class: 'muted' }, `and ${count(locks.length - 8)} more locks`) : '');
}

function axis(scale) {
  const node = el('div', { class: 'lock-axis', 'aria-hidden': 'true' });
  let free = -Infinity;
  scale.offsets.forEach((offset, i) => {
    const place = scale.places[i];
    const text = offsetWords(offset);
    // A letter takes about 17 of 1000 in a narrow pane; labels neither overlap nor leave the axis.
    const wide = 20 + text.length * 17;
    if (place < free || place + wide > 1010) return;
    free = place + wide;
    const label = el('span', {}, text);
    label.style.left = `${place / 10}%`;
    node.append(label);
  });
  return node;
}

export class LocksPanel {
  #host = el('div', { class: 'locks', tabindex: '0', role: 'group', 'aria-label': 'Byte-range locks by file' });
  #shown = null;

  constructor(host) {
    host.append(this.#host);
  }

  draw(locks) {
    const text = JSON.stringify(locks.map(({ read, ...lock }) => lock));
    if (text === this.#shown) return;
    this.#shown = text;
    const files = new Map();
    for (const lock of locks) {
      const name = lock.share + lock.path;
      if (!files.has(name)) files.set(name, []);
      files.get(name).push(lock);
    }
    this.#host.replaceChildren(
      el('p', { class: 'legend' }, el('i', { class: 'key exclusive' }), 'exclusive ', el('i', { class: 'key shared' }), 'shared; short ranges are drawn wider than they are'),
      ...[...files].slice(0, FILES_MAX).map(([name, held]) => drawFile(name, held)),
      files.size > FILES_MAX ? el('p', { class: 'muted' }, `${count(files.size - FILES_MAX)} more files have locks.`) : '');
  }
}
