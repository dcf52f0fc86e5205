// The section of the report: for each finding a lane for each client, a column for each request that
// shows it, and a line through them in their order. What is found is decided by the server.

import { count, el, svg } from './dom.js';

/** The most findings drawn. */
const FINDINGS_MAX = 50;
/** The size of a column and of a lane, in units of the drawing. */
const COLUMN = 100;
const LANE = 40;

const TONES = { error: 'bad', warn: 'warn', hint: '' };

/** The lanes of a finding: its clients, and the place of each row of evidence. Pure. */
export function lanesOf(evidence) {
  const names = [...new Set(evidence.map(({ client }) => client))];
  const places = evidence.map(({ client }, i) => [(i + 0.5) * COLUMN, (names.indexOf(client) + 0.5) * LANE]);
  return { names, places };
}

function drawLanes({ evidence, level }) {
  const { names, places } = lanesOf(evidence);
  const [width, height] = [evidence.length * COLUMN, names.length * LANE];
  const line = svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', class: level, 'aria-hidden': 'true' },
    svg('polyline', { points: places.join(' '), 'vector-effect': 'non-scaling-stroke' }));
  const steps = evidence.map(({ seq, time, client, operation, object, etag, status }, i) => {
    const title = `${seq}: ${client}, ${operation} ${object}, ${etag ?? 'no ETag'}, ${status ?? 'no answer'}, ${time}`;
    const step = el('li', { title }, el('b', {}, operation), el('span', { class: 'mono' }, etag ?? String(status ?? 'no answer')));
    step.style.gridArea = `${names.indexOf(client) + 1} / ${i + 1}`;
    return step;
  });
  const rows = el('ol', { 'aria-label': 'The requests in order' }, ...steps);
  rows.style.gridTemplate = `repeat(${names.length}, ${LANE}px) / repeat(${evidence.length}, minmax(0, 1fr))`;
  return el('div', { class: 'evidence' }, el('div', {}, ...names.map((name) => el('span', { title: name }, name))), el('div', {}, line, rows));
}

function drawFinding(finding) {
  const { level, rule, object, count: times, mark, message, advice } = finding;
  return el('section', { class: 'finding' },
    el('h3', {}, el('span', { class: `pill ${TONES[level]}` }, level), ` ${rule} of `, el('span', { class: 'mono' }, object), times > 1 ? ` ${count(times)} times` : ''),
    el('p', {}, `${message}.`), drawLanes(finding), el('p', { class: 'muted' }, mark ? `In ${mark}. ${advice}` : advice));
}

class ReportPanel {
  #host;
  #shown = null;

  constructor(host) { this.#host = host; }

  draw(findings) {
    const text = JSON.stringify(findings.map(({ read, ...finding }) => finding));
    if (text === this.#shown) return;
    this.#shown = text;
    const more = findings.length - FINDINGS_MAX;
    this.#host.replaceChildren(...findings.slice(0, FINDINGS_MAX).map(drawFinding), more > 0 ? el('p', { class: 'muted' }, `${count(more)} more: latchfs report has all.`) : '');
  }
}

export const REPORT_SECTION = {
  id: 'report', name: 'Report', make: (host) => new ReportPanel(host),
  empty: ['Nothing went wrong between clients.', 'Lost updates, blind retries, writes after the end of a lease are drawn here. What was never tested, by command:', ['latchfs report']],
};
