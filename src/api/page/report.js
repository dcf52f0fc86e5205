// The section of the report: for each finding a lane for each client, a column for each request that
// shows it, and a line through them in their order. What is found is decided by the server.

import { clockTime, count, el, svg } from './dom.js';

/** The most findings drawn. */
const FINDINGS_MAX = 50;
/** The size of a column and of a lane, in units of the drawing. */
const COLUMN = 100;
const LANE = 40;

const TONES = { error: 'bad', warn: 'warn', hint: '' };

/** The lanes of a finding: its clients, and the place of each row of evidence. Pure. */
export function lanesOf({ clients, evidence }) {
  const names = [...new Set([...clients, ...evidence.map(({ client }) => client)])];
  const places = evidence.map(({ client }, i) => ({ x: (i + 0.5) * COLUMN, y: (names.indexOf(client) + 0.5) * LANE }));
  return { names, places };
}

function drawLanes(finding) {
  const { evidence, level } = finding;
  const { names, places } = lanesOf(finding);
  const size = { width: evidence.length * COLUMN, height: names.length * LANE };
  const line = svg('svg', { viewBox: `0 0 ${size.width} ${size.height}`, preserveAspectRatio: 'none', class: `evidence-line ${level}`, 'aria-hidden': 'true' },
    ...names.map((_, i) => svg('line', { x1: 0, x2: size.width, y1: (i + 0.5) * LANE, y2: (i + 0.5) * LANE, class: 'lane' })),
    svg('polyline', { points: places.map(({ x, y }) => `${x},${y}`).join(' '), class: 'order' }));
  const steps = evidence.map((row, i) => {
    const status = row.status ?? 'no answer';
    const step = el('li', { class: 'evidence-step', title: `${row.seq}: ${row.client}, ${row.operation} ${row.object}, ${row.etag ?? 'no ETag'}, ${status}, ${clockTime(Date.parse(row.time))}` },
      el('b', {}, row.operation), el('span', { class: 'mono' }, row.etag ?? String(status)));
    step.style.gridColumn = i + 1;
    step.style.gridRow = names.indexOf(row.client) + 1;
    return step;
  });
  const rows = el('ol', { class: 'evidence-steps', 'aria-label': 'The requests in order' }, ...steps);
  rows.style.gridTemplateColumns = `repeat(${evidence.length}, minmax(0, 1fr))`;
  rows.style.gridTemplateRows = `repeat(${names.length}, ${LANE}px)`;
  return el('div', { class: 'evidence' },
    el('div', { class: 'evidence-clients' }, ...names.map((name) => el('span', { title: name }, name))),
    el('div', { class: 'evidence-lanes' }, line, rows));
}

function drawFinding(finding) {
  const { level, rule, object, count: times, mark, message, advice } = finding;
  return el('section', { class: 'finding' },
    el('h3', {}, el('span', { class: `pill ${TONES[level] ?? ''}` }, level), ` ${rule} `, el('span', { class: 'mono' }, object),
      times > 1 ? el('span', { class: 'muted' }, ` ${count(times)} times`) : ''),
    el('p', {}, `${message}.`),
    finding.evidence.length > 0 ? drawLanes(finding) : '',
    el('p', { class: 'muted' }, mark ? `In ${mark}. ${advice}` : advice));
}

export class ReportPanel {
  #host = el('div', { class: 'report', tabindex: '0', role: 'group', 'aria-label': 'Findings of the report' });
  #shown = null;

  constructor(host) {
    host.append(this.#host);
  }

  draw(findings) {
    const text = JSON.stringify(findings.map(({ read, ...finding }) => finding));
    if (text === this.#shown) return;
    this.#shown = text;
    this.#host.replaceChildren(
      ...findings.slice(0, FINDINGS_MAX).map(drawFinding),
      findings.length > FINDINGS_MAX ? el('p', { class: 'muted' }, `${count(findings.length - FINDINGS_MAX)} more: latchfs report has all.`) : '');
  }
}

export const REPORT_SECTION = {
  id: 'report', name: 'Report', make: (host) => new ReportPanel(host),
  empty: ['Nothing was found.', 'What clients do to each other is listed here: lost updates, blind retries, leases that had ended. With what was never tested, by command:', ['latchfs report']],
};
