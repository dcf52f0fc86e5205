// The stack of sections: what the server holds, and the test bench. Decides which are unfolded, and
// what an empty one says; what a section lists is decided in panels.js, locks.js, bench.js,
// report.js and explore.js.

import { BENCH_SECTIONS } from './bench.js';
import { $, count, el, emptyState, say } from './dom.js';
import { EXPLORE_SECTION } from './explore.js';
import { matchesRow, RowsPanel, STATE_SECTIONS } from './panels.js';
import { REPORT_SECTION } from './report.js';

/** The sections: the name of a list of the server, a name, `make(host, context)`, what an empty one says. */
export const SECTIONS = [...STATE_SECTIONS, ...BENCH_SECTIONS, REPORT_SECTION, EXPLORE_SECTION];

export class Sections {
  #context;
  #log;
  #parts = new Map();

  constructor(context, log) {
    this.#context = context;
    this.#log = log;
    SECTIONS.forEach((section, i) => this.#make(section, i + 1));
  }

  #make(section, number) {
    const { id, name, make } = section;
    const host = el('div', { class: 'panel', id: `panel-${id}` });
    const part = { host, empty: el('div', { class: 'empty' }), note: el('p', { class: 'left-out', role: 'status' }), chosen: null };
    // The user's choice stays; without one, a section is unfolded while it has something to show.
    const choose = () => { part.chosen = !part.node.open; };
    part.node = el('details', { id: `section-${id}`, on: { toggle: () => this.draw() } },
      el('summary', { title: `${name} (${number})`, on: { click: choose } }, el('h2', {}, name), el('span', { class: 'count' })), part.empty, host, part.note);
    part.panel = make ? make(host, this.#context) : new RowsPanel(host, this.#context, section);
    this.#parts.set(id, part);
    $('sections').append(part.node);
  }

  /** Draws the counts, and the lists of `wanted` sections that are unfolded. */
  draw(wanted = SECTIONS) {
    const { data, leftOut, refused, known } = this.#context.state;
    for (const section of SECTIONS) {
      const { id } = section;
      const { node, chosen } = this.#parts.get(id);
      const n = data[id].length + (leftOut[id] ?? 0);
      const isKnown = known.has(id) || Boolean(refused[id]);
      say(node.firstChild.lastChild, n > 0 ? count(n) : isKnown ? 'none' : '…');
      node.classList.toggle('is-zero', n === 0);
      node.open = chosen ?? n > 0;
      if (node.open && isKnown && wanted.includes(section)) this.#drawPart(section, data[id], leftOut[id] ?? 0, refused[id]);
    }
  }

  #drawPart(section, all, leftOut, refused) {
    const { host, empty, note, panel } = this.#parts.get(section.id);
    const rows = section.service && this.#log.filtered ? all.filter((row) => matchesRow(section, row, this.#log.filter.text)) : all;
    const state = rows.length > 0 ? '' : refused ?? (all.length > 0 ? 'filtered' : 'none');
    empty.hidden = state === '';
    if (empty.dataset.state !== state) {
      empty.dataset.state = state;
      if (refused) emptyState(empty, 'The server does not show this.', refused);
      else if (all.length > 0) emptyState(empty, 'Nothing here matches the filter.');
      else emptyState(empty, ...section.empty);
    }
    host.classList.toggle('is-empty', rows.length === 0);
    say(note, leftOut > 0 ? `The server has ${count(leftOut)} more; use the command line with a path to see these.` : '');
    panel.draw(rows);
  }

  /** Draws running times. */
  tick() {
    for (const { node, panel } of this.#parts.values()) if (node.open) panel.tick?.();
  }

  unfold(id) {
    const { node } = this.#parts.get(id);
    this.#parts.get(id).chosen = true;
    this.draw();
    node.firstChild.focus();
    node.firstChild.scrollIntoView({ block: 'nearest' });
  }

  /** Unfolds the section of handles and marks one. False if it is not open any more. */
  markHandle(handle) {
    this.unfold('handles');
    return this.#parts.get('handles').panel.mark(handle);
  }
}
