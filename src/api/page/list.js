// A list that draws only the rows in view: rows have one height, and elements are kept by key so that
// a focused button stays focused while the data changes. What a row shows is decided by the caller.

import { el } from './dom.js';

const OVERSCAN = 4;

export class VirtualList {
  #host;
  #body;
  #rows = new Map();
  #spare = [];
  #items = [];
  #options;
  #height = 0;
  /** Where the list itself scrolled to last. */
  #end = 0;
  #following;

  /**
   * `options`: `label`; `role` (table or grid); `key(item)`; `make()` gives a row's element; `fill(row, item, index)`;
   * `height()` in pixels; `head`, an element above the rows; `follow`: stay at the end;
   * `onScroll()`.
   */
  constructor(host, options) {
    this.#host = host;
    this.#options = options;
    this.#following = Boolean(options.follow);
    this.#body = el('div', { class: 'list-body', role: 'rowgroup' });
    host.setAttribute('role', options.role ?? 'table');
    host.setAttribute('aria-label', options.label);
    host.tabIndex = 0;
    host.append(...(options.head ? [options.head] : []), this.#body);
    host.addEventListener('scroll', () => this.#onScroll(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(host);
  }

  get following() { return this.#following; }

  /** Stays at the end from now on, or where it is. */
  follow(following = true) {
    this.#following = following;
    this.draw();
  }

  #onScroll() {
    if (this.#options.follow) {
      const { scrollTop, clientHeight, scrollHeight } = this.#host;
      // Rows that arrive move the end away from the view, and a taller list moves the view itself:
      // only a user moves the view up and away from the end.
      const atEnd = scrollTop + clientHeight >= scrollHeight - 2;
      this.#following = atEnd || (this.#following && scrollTop >= this.#end - 2);
    }
    this.#options.onScroll?.();
    this.draw();
  }

  /** Shows `items`. `dropped`: how many rows were removed above, to keep what is in view in place. */
  show(items, dropped = 0) {
    this.#items = items;
    if (dropped > 0 && !this.#following) this.#host.scrollTop -= dropped * this.#height;
    this.draw();
  }

  /** Scrolls until item `index` is in view. */
  reveal(index) {
    this.#following = false;
    const top = index * this.#height;
    const room = this.#room();
    if (top < this.#host.scrollTop) this.#host.scrollTop = top;
    else if (top + this.#height > this.#host.scrollTop + room) this.#host.scrollTop = top + this.#height - room;
    this.draw();
  }

  #room() { return this.#host.clientHeight - this.#body.offsetTop; }

  draw() {
    const host = this.#host;
    if (host.clientHeight === 0) return;
    this.#height = this.#options.height();
    const height = this.#height;
    const total = this.#items.length * height;
    if (this.#body.dataset.total !== String(total)) {
      this.#body.dataset.total = String(total);
      this.#body.style.height = `${total}px`;
      host.setAttribute('aria-rowcount', String(this.#items.length));
    }
    if (this.#following) {
      const end = Math.max(0, host.scrollHeight - host.clientHeight);
      if (Math.abs(host.scrollTop - end) > 1) host.scrollTop = end;
      this.#end = host.scrollTop;
    }
    const first = Math.max(0, Math.floor(host.scrollTop / height) - OVERSCAN);
    const last = Math.min(this.#items.length, Math.ceil((host.scrollTop + host.clientHeight) / height) + OVERSCAN);
    this.#fill(first, last, height);
  }

  #fill(first, last, height) {
    const wanted = new Map();
    for (let i = first; i < last; i += 1) wanted.set(this.#options.key(this.#items[i], i), i);
    for (const [key, row] of this.#rows) {
      if (!wanted.has(key)) {
        this.#rows.delete(key);
        this.#spare.push(row);
      }
    }
    for (const [key, index] of wanted) {
      let row = this.#rows.get(key);
      if (!row) {
        row = this.#spare.pop() ?? this.#make();
        this.#rows.set(key, row);
      }
      const top = `translateY(${index * height}px)`;
      if (row.style.transform !== top) row.style.transform = top;
      row.setAttribute('aria-rowindex', String(index + 1));
      row.hidden = false;
      this.#options.fill(row, this.#items[index], index);
    }
    for (const row of this.#spare) row.hidden = true;
    // While the list follows a fast log, nobody goes through it row by row.
    if (!this.#following) this.#order([...wanted.keys()].map((key) => this.#rows.get(key)));
  }

  /** Puts the rows into the order in which Tab and screen readers go through them. */
  #order(rows) {
    if (rows.every((row, i) => i === 0 || rows[i - 1].nextElementSibling === row)) return;
    // The focused row stays where it is: moving it would take the focus away.
    const focused = rows.findIndex((row) => row.contains(document.activeElement));
    const anchor = rows[Math.max(0, focused)];
    for (const row of rows.slice(0, Math.max(0, focused))) this.#body.insertBefore(row, anchor);
    let previous = anchor;
    for (const row of rows.slice(Math.max(0, focused) + 1)) {
      previous.after(row);
      previous = row;
    }
  }

  #make() {
    const row = this.#options.make();
    row.setAttribute('role', 'row');
    row.classList.add('row');
    this.#body.append(row);
    return row;
  }
}
