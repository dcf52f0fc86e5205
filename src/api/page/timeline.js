// The timeline: one lane per client, a bar from each request's start to its answer. Decides drawing
// and input; the geometry is in lanes.js.

import { $, clockTime, el, emptyState, plural, remember, remembered, say, span } from './dom.js';
import { gatedTime, holderWords, outcome, withAgent } from './log.js';
import { isWaiting, orderView, placeNames, timeView } from './lanes.js';

/** The height of a lane by its rows. */
const laneHeight = ({ levels }) => 18 + 18 * Math.max(1, levels);
const AXIS = 22;
/** The height of a row of names of lines above the lanes, and the most rows. */
const NAMES = 14;
const NAMES_MAX = 4;
/** The most pixels of a name. */
const NAME_MAX = 170;
const TIME_SPANS = [50, 100, 250, 500, 1000, 2500, 5000, 15000, 60000, 300000, 900000];
const COLUMNS = [8, 12, 18, 26, 36, 48, 64];
/** How often a running axis of time is drawn. */
const TICK_MS = 100;

export class Timeline {
  #log;
  #hooks;
  #canvas = $('timeline-canvas');
  #colours = {};
  #axis = 'steps';
  #span = 15000;
  #column = 26;
  /** Milliseconds (time) or entries (order) before the newest; 0: live. */
  #back = 0;
  /** Also clients that have nothing to do with the requests that wait. */
  #withIdle = false;
  #stoppedAt = null;
  #rects = [];
  #view = { lanes: [] };
  #hovered = null;
  #focused = null;
  #selected = null;
  #drag = null;
  #labels = 0;
  #drawnAt = 0;
  #head = 0;
  #drawnLast = '';

  /** `hooks`: `select(entry)`, `now()` the system's time of the server. */
  constructor(log, hooks) {
    this.#log = log;
    this.#hooks = hooks;
    this.#axis = remembered('axis') === 'time' ? 'time' : 'steps';
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#readColours());
    this.#readColours();
    new ResizeObserver(() => this.draw()).observe($('timeline-box'));
    this.#listen();
    emptyState($('timeline-empty'), 'No requests to draw yet.', 'Each client gets a lane; bars go from request to answer, so that two clients show how they interleave.');
    setInterval(() => this.#axis === 'time' && !document.hidden && !this.#log.paused && this.#back === 0 && this.draw(), TICK_MS);
    this.setAxis(this.#axis);
  }

  #readColours() {
    // As the colour of an element, a variable has the value of the system's setting.
    for (const name of ['text', 'muted', 'line', 'surface', 'ok', 'ok-text', 'red', 'red-fill', 'amber', 'accent', 'miss']) {
      this.#canvas.style.color = `var(--${name})`;
      this.#colours[name] = getComputedStyle(this.#canvas).color;
    }
    this.draw();
  }

  setAxis(axis) {
    this.#axis = axis;
    this.#back = 0;
    remember('axis', axis);
    for (const node of document.querySelectorAll('[data-axis]')) {
      const on = node.dataset.axis === axis;
      node.setAttribute('aria-checked', String(on));
      node.tabIndex = on ? 0 : -1;
    }
    this.draw();
  }

  /** `by`: 1 zooms in, -1 out. */
  zoom(by) {
    const next = (list, value, step) => list[Math.min(list.length - 1, Math.max(0, list.indexOf(value) + step))];
    if (this.#axis === 'time') this.#span = next(TIME_SPANS, this.#span, -by);
    else this.#column = next(COLUMNS, this.#column, by);
    this.draw();
  }

  select(entry) {
    this.#selected = entry;
    this.draw();
  }

  /** Goes back to where `entry` is drawn, if it is not in view. */
  reveal(entry) {
    const rect = () => this.#rects.find(({ bar }) => bar.source === entry);
    if (!rect()) {
      const after = this.#log.visible.length - this.#log.visible.indexOf(entry);
      this.#back = Math.max(0, this.#axis === 'time' ? this.#hooks.now() - entry.start - this.#span / 2 : after - 4);
      this.draw();
    }
    const box = $('timeline-box');
    const { y, tall } = rect() ?? { y: 0, tall: 0 };
    if (y < box.scrollTop || y + tall > box.scrollTop + box.clientHeight) box.scrollTop = y - 20;
  }

  /** Draws after events arrived: by time at the pace of the axis, since a dense view costs most. */
  refresh() {
    if (this.#axis !== 'time' || performance.now() - this.#drawnAt > TICK_MS) this.draw();
  }

  draw() {
    this.#drawnAt = performance.now();
    const box = $('timeline-box');
    const { clientWidth } = box;
    if (clientWidth === 0) return;
    this.#labels = clientWidth < 520 ? 118 : 150;
    const width = clientWidth - this.#labels - 8;
    // A paused view stands still, so its end does too.
    this.#stoppedAt = this.#log.paused || this.#back > 0 ? this.#stoppedAt ?? this.#hooks.now() : null;
    const end = this.#stoppedAt ?? this.#hooks.now();
    const found = this.#back === 0 ? this.#log.focus() : null;
    const focus = this.#withIdle ? null : found?.lanes;
    this.#view = this.#axis === 'time'
      ? timeView(this.#log, { width, span: this.#span, end: end - this.#back, focus })
      : orderView(this.#log, { width, column: this.#column, back: this.#back, focus });
    $('timeline-idle').hidden = !(found?.idle > 0);
    $('timeline-idle').setAttribute('aria-pressed', String(this.#withIdle));
    say($('timeline-idle'), plural(found?.idle ?? 0, 'idle client'));
    this.#head = this.#nameLines(width) * NAMES;
    const empty = this.#view.lanes.length === 0 && this.#view.lines.length === 0;
    $('timeline-empty').hidden = !empty || this.#log.entries.length > 0;
    this.#canvas.classList.toggle('is-empty', !$('timeline-empty').hidden);
    $('timeline-live').hidden = this.#back === 0;
    const { hidden, from } = this.#view;
    const isLonger = this.#log.visible[0]?.start < from;
    say($('timeline-scale'), [this.#axis === 'time' ? `last ${span(this.#span)}` : '', hidden > 0 ? `${plural(hidden, 'more client')}` : '', isLonger && !found && this.#back === 0 ? 'drag to see earlier' : ''].filter(Boolean).join(', '));
    this.#paint(clientWidth, this.#view.lanes.reduce((sum, lane) => sum + laneHeight(lane), this.#head) + AXIS, width);
  }

  #paint(fullWidth, height, width) {
    const canvas = this.#canvas;
    const scale = devicePixelRatio || 1;
    const size = `${fullWidth}x${height}@${scale}`;
    if (this.#drawnLast !== size) {
      this.#drawnLast = size;
      canvas.width = Math.round(fullWidth * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.height = `${height}px`;
    }
    const pen = canvas.getContext('2d');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, fullWidth, height);
    this.#rects = [];
    this.#paintAxis(pen, width, height);
    this.#paintLines(pen, height);
    let top = this.#head;
    for (const lane of this.#view.lanes) {
      this.#paintLane(pen, lane, top, width, fullWidth);
      top += laneHeight(lane);
    }
    this.#paintNames(pen);
  }

  #paintAxis(pen, width, height) {
    const { muted, line } = this.#colours;
    pen.font = '10.5px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    pen.fillStyle = muted;
    pen.strokeStyle = line;
    pen.lineWidth = 1;
    const { from } = this.#view;
    for (const tick of this.#view.ticks) {
      const x = Math.round(this.#labels + tick.x) + 0.5;
      pen.beginPath();
      pen.moveTo(x, 0);
      pen.lineTo(x, height - AXIS + 4);
      pen.stroke();
      const text = this.#axis === 'time' ? clockTime(tick.at, this.#span < 5000 ? 3 : 0) : `+${span(tick.at - from)}`;
      if (tick.x + pen.measureText(text).width < width + 8) pen.fillText(text, x + 3, height - AXIS / 2 + 2);
    }
    if (this.#axis !== 'time' && Number.isFinite(from)) pen.fillText(fit(pen, clockTime(from), this.#labels - 16), 10, height - AXIS / 2 + 2);
  }

  #paintLane(pen, lane, top, width, fullWidth) {
    const { text, muted, line } = this.#colours;
    const height = laneHeight(lane);
    pen.fillStyle = line;
    pen.fillRect(0, top + height - 1, fullWidth, 1);
    pen.fillStyle = text;
    pen.font = '600 11.5px system-ui, sans-serif';
    pen.fillText(fit(pen, lane.name, this.#labels - 16), 10, top + (lane.about ? 13 : 18));
    if (lane.about) {
      pen.fillStyle = muted;
      pen.font = '10.5px system-ui, sans-serif';
      pen.fillText(fit(pen, lane.about, this.#labels - 16), 10, top + 26);
    }
    pen.save();
    pen.beginPath();
    pen.rect(this.#labels, top, width + 8, height);
    pen.clip();
    const gap = lane.levels > 1 ? 4 : 0;
    const tall = (height - 14 - gap * (lane.levels - 1)) / lane.levels;
    for (const bar of lane.bars) this.#paintBar(pen, bar, top + 7 + bar.level * (tall + gap), tall);
    pen.restore();
  }

  #paintBar(pen, bar, y, tall) {
    const { ok, red, 'red-fill': redFill, miss, amber } = this.#colours;
    const { entry } = bar;
    const x = this.#labels + bar.x0;
    const wide = bar.x1 - bar.x0;
    const open = entry.end === Infinity;
    this.#rects.push({ x, y, wide: Math.max(wide, 8), tall, bar, shift: bar.point ? -4 : 0 });
    if (bar.point) {
      pen.fillStyle = entry.refused ? red : entry.kind === 'fault' ? amber : ok;
      pen.beginPath();
      pen.moveTo(x, y + tall / 2 - 5);
      pen.lineTo(x + 5, y + tall / 2);
      pen.lineTo(x, y + tall / 2 + 5);
      pen.lineTo(x - 5, y + tall / 2);
      pen.fill();
      this.#ring(pen, bar, x - 6, y, 12, tall);
      return;
    }
    if (!open) {
      pen.fillStyle = bar.mixed ? ok : entry.refused ? redFill : entry.failed ? miss : ok;
      if (wide < 5) {
        pen.fillRect(x, y, wide, tall);
      } else {
        round(pen, x, y, wide, tall);
        pen.fill();
      }
    }
    if (entry.failed) {
      // A second mark beside the colour.
      pen.fillStyle = red;
      const marked = bar.mixed ? tall / 3 : tall;
      pen.fillRect(x + wide - 3, y + tall - marked, 3, marked);
    }
    for (const gate of bar.gates) this.#paintGate(pen, gate, y, tall, open);
    this.#label(pen, bar, x, y, tall);
    this.#ring(pen, bar, x, y, Math.max(wide, 3), tall);
  }

  /** Writes the operation into its bar, or beside it where the lane is free. */
  #label(pen, bar, x, y, tall) {
    const { entry } = bar;
    const { text, 'ok-text': okText, surface } = this.#colours;
    const wide = bar.x1 - bar.x0;
    const label = isWaiting(entry) ? `${entry.operation} waits` : entry.operation + (entry.failed || entry.kind === 'abandoned' ? ` ${outcome(entry)}` : '');
    pen.font = '11px system-ui, sans-serif';
    const middle = y + tall / 2 + 0.5;
    const long = pen.measureText(label).width;
    const beside = Math.min((bar.free ?? this.#canvas.clientWidth - this.#labels) - bar.x1, 170);
    if (entry.end !== Infinity && long > wide - 10 && beside > Math.max(wide, 40)) {
      const shown = fit(pen, label, beside - 8);
      pen.fillStyle = surface;
      pen.fillRect(x + wide + 2, middle - 7, pen.measureText(shown).width + 4, 14);
      pen.fillStyle = entry.refused ? this.#colours.red : text;
      pen.fillText(shown, x + wide + 4, middle);
      return;
    }
    // A bar that began before the view has its label at the edge.
    const left = Math.max(x, this.#labels);
    const shown = fit(pen, label, x + wide - left - 10);
    if (!shown) return;
    if (bar.gates.length > 0) {
      // As low as the letters: the hatching above and below says that the request was gated.
      pen.fillStyle = surface;
      pen.fillRect(left + 4, middle - 6, pen.measureText(shown).width + 2, 11);
    }
    pen.fillStyle = entry.refused || bar.gates.length > 0 ? text : okText;
    pen.fillText(shown, left + 5, middle);
  }

  #paintGate(pen, [g0, g1], y, tall, open) {
    const { amber, surface } = this.#colours;
    const x = this.#labels + g0;
    const wide = Math.max(2, g1 - g0);
    pen.save();
    pen.beginPath();
    pen.rect(x, y, wide, tall);
    pen.fillStyle = surface;
    pen.fill();
    pen.clip();
    pen.strokeStyle = amber;
    pen.globalAlpha = 0.75;
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (let at = Math.max(x, 0) - tall - ((Math.max(x, 0) - tall) % 6); at < x + wide; at += 6) {
      pen.moveTo(at, y + tall);
      pen.lineTo(at + tall, y);
    }
    pen.stroke();
    pen.restore();
    pen.strokeStyle = amber;
    pen.lineWidth = 1;
    if (open) pen.setLineDash([4, 3]);
    pen.strokeRect(x + 0.5, y + 0.5, wide - 1, tall - 1);
    pen.setLineDash([]);
  }

  #ring(pen, bar, x, y, wide, tall) {
    if (bar.source !== this.#selected && bar.source !== this.#hovered && bar.source !== this.#focused) return;
    pen.strokeStyle = this.#colours.accent;
    pen.lineWidth = bar.source === this.#hovered ? 1.5 : 2.5;
    round(pen, x - 1.5, y - 1.5, wide + 3, tall + 3);
    pen.stroke();
  }

  /** Places the names of the lines in view; gives the number of their rows. */
  #nameLines(width) {
    const pen = this.#canvas.getContext('2d');
    pen.font = '10.5px system-ui, sans-serif';
    const named = this.#view.lines.map((line) => {
      const name = fit(pen, line.entry.operation, NAME_MAX);
      return { ...line, name, wide: pen.measureText(name).width };
    });
    this.#view.lines = placeNames(named, width);
    return Math.min(NAMES_MAX, Math.max(0, ...this.#view.lines.map(({ row }) => row + 1)));
  }

  /** Below the bars and what is written on them. A line begins at its name. */
  #paintLines(pen, height) {
    pen.strokeStyle = this.#colours.amber;
    pen.setLineDash([3, 3]);
    for (const { entry, x, row } of this.#view.lines) {
      const at = Math.round(this.#labels + x) + 0.5;
      const top = row < NAMES_MAX ? row * NAMES : this.#head;
      pen.beginPath();
      pen.moveTo(at, top);
      pen.lineTo(at, height - AXIS + 4);
      pen.stroke();
      this.#rects.push({ x: at, y: 0, wide: 6, tall: height - AXIS, bar: { entry, source: entry }, shift: -3, line: true });
    }
    pen.setLineDash([]);
  }

  #paintNames(pen) {
    const { amber, surface } = this.#colours;
    pen.font = '10.5px system-ui, sans-serif';
    for (const { name, row, left, wide } of this.#view.lines) {
      if (row >= NAMES_MAX) continue;
      pen.fillStyle = surface;
      pen.fillRect(this.#labels + left - 2, row * NAMES + 1, wide + 4, NAMES - 2);
      pen.fillStyle = amber;
      pen.fillText(name, this.#labels + left, row * NAMES + NAMES / 2);
    }
  }

  #listen() {
    const canvas = this.#canvas;
    canvas.addEventListener('pointermove', (event) => this.#move(event));
    canvas.addEventListener('pointerleave', () => this.#hover(null));
    canvas.addEventListener('pointerdown', (event) => {
      this.#drag = { x: event.clientX, back: this.#back, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointerup', (event) => {
      const dragged = this.#drag?.moved;
      this.#drag = null;
      if (!dragged) {
        const hit = this.#hit(event);
        if (hit) this.#hooks.select(hit.bar.source);
      }
    });
    canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      this.zoom((event.deltaY || event.deltaX) < 0 ? 1 : -1);
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => this.#key(event));
    canvas.addEventListener('blur', () => { this.#focused = null; this.#tip(null); this.draw(); });
    $('zoom-in').addEventListener('click', () => this.zoom(1));
    $('zoom-out').addEventListener('click', () => this.zoom(-1));
    $('timeline-live').addEventListener('click', () => { this.#back = 0; this.draw(); });
    $('timeline-idle').addEventListener('click', () => { this.#withIdle = !this.#withIdle; this.draw(); });
    for (const node of document.querySelectorAll('[data-axis]')) {
      node.addEventListener('click', () => this.setAxis(node.dataset.axis));
      node.addEventListener('keydown', (event) => {
        if (!event.key.startsWith('Arrow')) return;
        this.setAxis(node.dataset.axis === 'time' ? 'steps' : 'time');
        document.querySelector(`[data-axis="${this.#axis}"]`).focus();
      });
    }
  }

  #hit(event) {
    const { left, top } = this.#canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const inside = ({ x: x0, y: y0, wide, tall, shift }) => x >= x0 + shift - 2 && x <= x0 + shift + wide + 2 && y >= y0 - 2 && y <= y0 + tall + 2;
    const hits = this.#rects.filter(inside);
    return hits.filter((rect) => !rect.line).pop() ?? hits.pop() ?? null;
  }

  #move(event) {
    if (this.#drag) {
      const by = event.clientX - this.#drag.x;
      if (Math.abs(by) > 4) this.#drag.moved = true;
      if (this.#drag.moved) {
        const unit = this.#axis === 'time' ? this.#span / Math.max(1, this.#canvas.clientWidth - this.#labels) : 0.5 / this.#column;
        const most = this.#axis === 'time' ? Infinity : Math.max(0, this.#log.visible.length - 4);
        this.#back = Math.min(most, Math.max(0, this.#drag.back + by * unit));
        if (this.#axis !== 'time') this.#back = Math.round(this.#back);
        this.draw();
      }
      return;
    }
    this.#hover(this.#hit(event));
  }

  #hover(hit) {
    const source = hit?.bar.source ?? null;
    this.#tip(hit);
    if (source === this.#hovered) return;
    this.#hovered = source;
    this.draw();
  }

  #tip(hit) {
    const tip = $('timeline-tip');
    tip.hidden = !hit;
    if (!hit) return;
    tip.replaceChildren(...words(hit.bar.entry, hit.bar.more).map(([name, text]) => el('p', { class: name }, text)));
    // Fixed to the window, since the box of the timeline scrolls.
    const { left, top } = this.#canvas.getBoundingClientRect();
    const x = Math.min(Math.max(4, left + hit.x), innerWidth - tip.offsetWidth - 8);
    const below = top + hit.y + hit.tall + 8;
    tip.style.left = `${x}px`;
    tip.style.top = `${below + tip.offsetHeight < innerHeight ? below : top + hit.y - tip.offsetHeight - 8}px`;
  }

  #key(event) {
    const rects = this.#rects.filter((rect) => !rect.line).sort((a, b) => a.bar.entry.start - b.bar.entry.start || a.y - b.y);
    const now = rects.findIndex((rect) => rect.bar.source === this.#focused);
    const here = rects[now];
    let next = null;
    if (event.key === 'ArrowRight') next = rects[now < 0 ? rects.length - 1 : Math.min(rects.length - 1, now + 1)];
    else if (event.key === 'ArrowLeft') next = rects[now < 0 ? rects.length - 1 : Math.max(0, now - 1)];
    else if (event.key === 'Home') next = rects[0];
    else if (event.key === 'End') next = rects[rects.length - 1];
    else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const down = event.key === 'ArrowDown';
      const others = rects.filter((rect) => here && (down ? rect.y > here.y + here.tall : rect.y + rect.tall < here.y));
      others.sort((a, b) => Math.abs(a.y - here.y) - Math.abs(b.y - here.y) || Math.abs(a.x - here.x) - Math.abs(b.x - here.x));
      next = here ? others[0] : rects[rects.length - 1];
    } else if (event.key === 'Enter' && here) {
      this.#hooks.select(here.bar.source);
    } else if (event.key === '+' || event.key === '=') this.zoom(1);
    else if (event.key === '-') this.zoom(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (!next) return;
    this.#focused = next.bar.source;
    this.#tip(next);
    say($('timeline-said'), words(next.bar.entry, next.bar.more).map(([, text]) => text).join('. '));
    this.draw();
  }
}

/** The lines of a tooltip: a class and a text each. */
function words(entry, more = 0) {
  const lines = [['tip-title', `${entry.operation} ${entry.target}`.trim()]];
  if (entry.who) lines.push(['muted', withAgent(entry.who, entry.agent)]);
  if (entry.end === Infinity) lines.push(['held', `waits at a gate since ${clockTime(entry.start)}`]);
  else if (entry.isEnd) {
    lines.push([entry.failed ? 'bad' : entry.kind === 'abandoned' ? 'held' : 'good', outcome(entry)]);
    lines.push(['muted', `${clockTime(entry.start)} for ${span(entry.end - entry.start)}`]);
    if (entry.gates.length > 0) lines.push(['held', `at gates for ${span(gatedTime(entry))}`]);
  } else {
    lines.push([entry.refused ? 'bad' : 'muted', `${outcome(entry)} at ${clockTime(entry.at)}`]);
  }
  if (entry.holder) lines.push(['bad', `held by ${holderWords(entry.holder)}`]);
  else if (entry.message) lines.push(['bad', entry.message]);
  if (more > 0) lines.push(['muted', `and ${plural(more, 'more request')} here: zoom in to tell them apart`]);
  return lines;
}

/** `text`, shortened to `width` pixels; empty if not even a few letters fit. */
function fit(pen, text, width) {
  if (width < 14) return '';
  if (pen.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? `${text.slice(0, low)}…` : '';
}

function round(pen, x, y, wide, tall) {
  pen.beginPath();
  pen.roundRect(x, y, Math.max(1, wide), tall, Math.min(3, wide / 2, tall / 2));
}
