// The geometry of the timeline: which bars are in view, in which lane, from where to where. Pure;
// drawing and input are in timeline.js.

/** The most lanes drawn. */
export const LANES_MAX = 40;
/** The most bars of a drawing by order. */
const BARS_MAX = 500;
/** Bars narrower than this share a column of so many pixels. */
const NARROW = 3;
/** Requests are logged when they are answered: so many that began before the view may end in it. */
const LATE_MAX = 200;
/** The most rows of one lane, for requests of one client that overlap. */
const LEVELS_MAX = 6;

/** True for a bar without an end whose request is at a gate. */
export const isWaiting = (entry) => entry.end === Infinity && entry.gates.at(-1).to === null;

/** A function that tells whether an entry is a bar or a point of a lane; `focus`: of these alone. */
const drawnIn = (log, focus) => (entry) => !entry.isGlobal && entry.kind !== 'gated' && entry.kind !== 'released' && entry.who !== ''
  && (!focus || focus.has(log.laneOf(entry).key));

/** Bars, points and lines from the end of `entries`, oldest first, until `enough(entry)` says so. */
function newest(entries, drawn, skip, enough) {
  const items = [];
  let skipped = 0;
  for (let i = entries.length - 1; i >= 0 && items.length < BARS_MAX; i -= 1) {
    const entry = entries[i];
    if (!drawn(entry) && !entry.isGlobal) continue;
    if (skipped < skip) {
      skipped += 1;
      continue;
    }
    if (enough(entry)) break;
    items.push(entry);
  }
  return items.reverse();
}

/** Requests that wait at a gate and have no answer yet, as bars without an end. */
const waiting = (log) => log.waiting().map(({ entry, gates }) => ({ ...entry, gates, end: Infinity, source: entry }));

/** Gives each bar a row of its lane, so that requests of one client that overlap stay apart. */
function stack(lanes) {
  for (const lane of lanes) {
    const last = [];
    for (const bar of lane.bars) {
      let level = last.findIndex((before) => before.ends <= bar.x0);
      if (level < 0) level = last.length < LEVELS_MAX ? last.length : last.indexOf(last.reduce((a, b) => (a.ends < b.ends ? a : b)));
      // Up to where a label may go beyond its bar.
      if (last[level]) last[level].free = bar.x0;
      last[level] = bar;
      bar.level = level;
    }
    lane.levels = Math.max(1, last.length);
  }
}

function toLanes(bars, log) {
  const byName = new Map();
  for (const bar of bars) {
    const of = log.laneOf(bar.entry);
    if (!byName.has(of.key)) byName.set(of.key, { ...of, rank: 2, bars: [] });
    const lane = byName.get(of.key);
    lane.bars.push(bar);
    lane.rank = Math.min(lane.rank, isWaiting(bar.entry) ? 0 : bar.entry.refused ? 1 : 2);
  }
  // Clients that wait come first, then those that were refused; of each kind in the order in which
  // they came, so that a lane keeps its place while others come and go.
  const lanes = [...byName.values()].sort((a, b) => a.rank - b.rank || a.order - b.order || 0);
  const shown = lanes.slice(0, LANES_MAX);
  stack(shown);
  return { lanes: shown, hidden: lanes.length - shown.length };
}

/**
 * The axis of time: `width` pixels show `span` milliseconds up to `end`. Bars too narrow to be told
 * apart are drawn as one, `mixed` if only some were refused, so that a drawing costs no more than
 * its pixels.
 */
export function timeView(log, { width, span, end, focus = null }) {
  const drawn = drawnIn(log, focus);
  const from = end - span;
  const x = (t) => ((t - from) / span) * width;
  const bars = [];
  const lines = [];
  const columns = new Map();
  let late = 0;
  for (let i = log.visible.length - 1; i >= 0 && late < LATE_MAX; i -= 1) {
    const entry = log.visible[i];
    if (entry.at < from) late += 1;
    if (entry.end < from || entry.start > end) continue;
    if (entry.isGlobal) lines.push({ entry, x: x(entry.at) });
    else if (drawn(entry)) addBar(log, bars, columns, bar(entry, entry, x, width));
  }
  for (const open of waiting(log)) if (open.start <= end) bars.push(bar(open, open.source, x, width));
  bars.sort((a, b) => a.x0 - b.x0);
  return { ...toLanes(bars, log), lines, from, ticks: timeTicks(from, end, width) };
}

function addBar(log, bars, columns, one) {
  if (one.ends - one.x0 < NARROW && one.gates.length === 0) {
    const lane = log.laneOf(one.entry).key;
    let column = columns.get(lane);
    if (!column) columns.set(lane, column = new Map());
    const at = Math.floor(one.x0 / NARROW);
    const there = column.get(at);
    if (there) {
      there.more += 1;
      there.mixed ||= one.entry.failed !== there.entry.failed;
      if (one.entry.failed && !there.entry.failed) Object.assign(there, { entry: one.entry, source: one.source, point: one.point });
      return;
    }
    column.set(at, one);
  }
  bars.push(one);
}

function bar(entry, source, x, width) {
  const x0 = x(entry.start);
  const x1 = entry.end === Infinity ? width : Math.max(x(entry.end), x0 + (entry.isEnd ? 3 : 0));
  const gates = entry.gates.map(({ from, to }) => [x(from), to === null ? width : x(to)]);
  // A bar of three pixels may touch the next one; only requests that overlap in time are stacked.
  const ends = entry.end === Infinity ? width : x(entry.end);
  return { entry, source, x0, x1, ends, gates, more: 0, mixed: false, point: !entry.isEnd && entry.end !== Infinity };
}

function timeTicks(from, end, width) {
  const wanted = ((end - from) / width) * 110;
  const unit = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((n) => n * unit).find((s) => s >= wanted);
  const ticks = [];
  for (let t = Math.ceil(from / step) * step; t <= end; t += step) ticks.push({ x: ((t - from) / (end - from)) * width, at: t });
  return ticks;
}

/**
 * The axis of order: every start, gate, release and answer is one step of `column` pixels, so that
 * requests of microseconds and of minutes interleave in plain sight. `back`: how many entries to
 * leave out at the end.
 */
export function orderView(log, { width, column, back, focus = null }) {
  const room = Math.max(4, Math.floor(width / column) - 1);
  const open = back === 0 ? waiting(log) : [];
  let used = open.length * 2;
  const items = newest(log.visible, drawnIn(log, focus), back, (entry) => (used += moments(entry).length) > room + 2);
  const all = [...items, ...open];
  const steps = all.flatMap((entry) => moments(entry)).sort((a, b) => a.at - b.at || a.rank - b.rank || a.seq - b.seq);
  const first = Math.max(0, steps.length - room);
  const place = new Map();
  steps.forEach((step, i) => {
    if (!place.has(step.entry)) place.set(step.entry, {});
    place.get(step.entry)[step.what] = (i - first + 0.5) * column;
  });
  const bars = [];
  const lines = [];
  for (const entry of all) {
    const at = place.get(entry);
    if (entry.isGlobal) {
      lines.push({ entry, x: at.start });
      continue;
    }
    const x1 = entry.end === Infinity ? width : at.end ?? at.start;
    const gates = entry.gates.map((_, i) => [at[`gated${i}`] ?? at.start, at[`released${i}`] ?? x1]);
    bars.push({ entry, source: entry.source ?? entry, x0: at.start, x1, ends: x1, gates, point: at.end === undefined && entry.end !== Infinity });
  }
  bars.sort((a, b) => a.x0 - b.x0);
  return { ...toLanes(bars, log), lines, ticks: orderTicks(steps.slice(first), column), from: steps[first]?.at };
}

/**
 * The lines in view from left to right, each with the `row` above the lanes and the `left` of its
 * name, which is `wide` pixels: beside its line, and beside no other name.
 */
export function placeNames(lines, width) {
  const ends = [];
  return lines.filter(({ x }) => x >= 0 && x <= width).sort((a, b) => a.x - b.x).map((line) => {
    const left = line.x + line.wide + 6 > width ? line.x - line.wide - 6 : line.x + 4;
    const free = ends.findIndex((end) => end < left);
    const row = free < 0 ? ends.length : free;
    ends[row] = left + line.wide + 4;
    return { ...line, left, row };
  });
}

/** The moments of an entry that are steps of the axis of order. */
function moments(entry) {
  const { seq } = entry;
  const found = [{ entry, what: 'start', at: entry.start, rank: 1, seq }];
  if (!entry.isEnd && entry.end !== Infinity) return found;
  entry.gates.forEach(({ from, to }, i) => {
    // An unanswered request is known from its gate on.
    if (from > entry.start) found.push({ entry, what: `gated${i}`, at: from, rank: 2, seq });
    // A wait that lasted to the end of its request ends with the bar.
    if (to !== null && to < entry.end) found.push({ entry, what: `released${i}`, at: to, rank: 3, seq });
  });
  if (entry.end !== Infinity) found.push({ entry, what: 'end', at: Math.max(entry.end, entry.start), rank: entry.end > entry.start ? 0 : 4, seq });
  return found;
}

function orderTicks(steps, column) {
  const every = Math.max(1, Math.ceil(90 / column));
  return steps.map((step, i) => ({ x: (i + 0.5) * column, at: step.at, labelled: i % every === 0 })).filter((tick) => tick.labelled);
}
