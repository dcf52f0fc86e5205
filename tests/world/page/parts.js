// Tests of the page's modules, run inside the page. Throws at the first that fails; gives their number.

const eq = (what, got, wanted) => {
  const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what}: ${a}, expected ${b}`);
};
const from = (name) => import(`/page/${name}.js`);

// With microseconds, as the server writes times.
const at = (ms) => `${new Date(Date.UTC(2026, 0, 1) + Math.floor(ms)).toISOString().slice(0, -1)}${String(Math.round((ms % 1) * 1000)).padStart(3, '0')}0Z`;
const answered = (client, start, end, more = {}) => ({
  event: 'request', time: at(end), started: at(start), duration_us: (end - start) * 1000, client, operation: 'Put Blob',
  path: 'docs/a', service: 'blob', status: 201, user_agent: 'sdk/1', ...more,
});

async function sse() {
  const { SseParser } = await from('follow');
  const parser = new SseParser();
  const bytes = new TextEncoder().encode(': hello\n\nid: 7\nevent: request\ndata: {"a":"\u00e4\u20ac"}\n\ndata: x\r\ndata: y\r\n\r\nevent: none\n\n');
  const events = [];
  // One byte at a time: letters of several bytes and line ends are split.
  for (const byte of bytes) events.push(...parser.push(Uint8Array.of(byte)));
  eq('events', events, [{ data: '{"a":"\u00e4\u20ac"}', id: '7', event: 'request' }, { data: 'x\ny' }]);
}

async function spans() {
  const { parseSpan, span, countdown } = await from('dom');
  eq('read', ['90s', '5m', ' 2 h', '250ms', '61', '1.5s', 'soon', '-1s', ''].map(parseSpan), [90000, 300000, 7200000, 250, 61000, 1500, null, null, null]);
  eq('written', [0.5, 12.34, 950, 1500, 61000, 7260000].map(span), ['500 µs', '12.3 ms', '950 ms', '1.5 s', '1 min 01 s', '2 h 01 min']);
  eq('left', [0, 0.2, 59.5, 61, 3661].map(countdown), ['0:00', '0:01', '1:00', '1:01', '1:01:01']);
}

async function bounds() {
  const { Log, KEPT_MAX } = await from('log');
  const log = new Log(() => {}, () => Date.UTC(2026, 0, 1));
  log.setFilter({ refusals: true });
  for (let i = 0; i < 45; i += 1) {
    log.add(Array.from({ length: 1000 }, (_, n) => answered(`127.0.0.1:${n % 300}`, i, i + 1, { status: n === 0 ? 409 : 201, refusal: n === 0 ? { rule: 'lease', message: 'leased' } : undefined })));
  }
  if (log.entries.length > KEPT_MAX) throw new Error(`${log.entries.length} entries are kept`);
  eq('all that is filtered is kept', log.visible.every((entry) => log.entries.includes(entry)), true);
  eq('a line below each refusal', log.lines.length, log.visible.length * 2);
  if (log.clients.size > 200) throw new Error(`${log.clients.size} clients are kept`);
  log.setFilter({ refusals: false, text: 'PUT docs/a' });
  eq('every word must be there', log.visible.length, log.entries.length);
  log.pause(true);
  log.add([answered('b', 0, 1)]);
  eq('held', [log.held, log.visible.length], [1, log.entries.length]);
  log.pause(false);
  eq('released', log.held, 0);
}

async function order() {
  const { Log } = await from('log');
  const { orderView } = await from('lanes');
  let now = 0;
  const log = new Log(() => {}, () => now);
  // A reads, B reads, A writes, B writes: microseconds or a minute apart, each is a step. B's write was gated.
  log.add([
    answered('A', 0, 1), answered('B', 0.5, 2), answered('A', 60000, 60001),
    { event: 'gated', request: 9, time: at(60000.5), client: 'B', client_request: 'b2', operation: 'Put Blob' },
    { event: 'released', request: 9, time: at(90000), client: 'B', client_request: 'b2', operation: 'Put Blob' },
    answered('B', 60000.25, 90001, { client_request: 'b2', status: 412, code: 'ConditionNotMet' }),
  ]);
  const { lanes } = orderView(log, { width: 1000, column: 10, back: 0 });
  eq('the refused one first', lanes.map((lane) => lane.name), ['B', 'A']);
  const [[b1, b2], [a1, a2]] = lanes.map((lane) => lane.bars);
  const steps = [a1.x0, b1.x0, a1.x1, b1.x1, a2.x0, b2.x0, b2.gates[0][0], a2.x1, b2.gates[0][1], b2.x1];
  eq('in the order of time', steps, [...steps].sort((x, y) => x - y));
  eq('a step each', new Set(steps).size, steps.length);
  eq('refused', b2.entry.refused, true);
  // A request that waits is a bar without an end.
  log.add([{ event: 'gated', request: 10, time: at(95000), client: 'A', operation: 'Put Blob' }]);
  const waiting = orderView(log, { width: 1000, column: 10, back: 0 }).lanes[0].bars.at(-1);
  eq('waits', [waiting.entry.end === Infinity, waiting.x1], [true, 1000]);
  // The log of files and the request itself tell of the same refusal: it is shown once.
  const before = log.entries.length;
  log.add([{ event: 'refused', time: at(96000), client: 'REST 127.0.0.1:1, request x', pid: 0, rule: 'sharing_violation' }]);
  eq('told once', log.entries.length, before);
  log.add([answered('REST 127.0.0.1:1', 95999, 96001, { status: 400, code: 'PopReceiptMismatch', refusal: { rule: 'receipt', message: 'says the service' } })]);
  const { refused, rule, message } = log.entries.at(-1);
  eq('with its rule', [refused, rule, message], [true, 'receipt', 'says the service']);
  // A client that went away while it waited: the bar ends there.
  log.add([
    { event: 'gated', request: 11, time: at(96100), client: 'C', operation: 'Put Blob' },
    { event: 'abandoned', request: 11, time: at(96200), client: 'C', operation: 'Put Blob' },
  ]);
  const gone = orderView(log, { width: 1000, column: 10, back: 0 }).lanes.find((lane) => lane.name === 'C').bars;
  eq('abandoned', gone.map(({ entry, point, gates, x1 }) => [entry.kind, entry.end - entry.start, point, gates[0][1] === x1]), [['abandoned', 100, false, true]]);
  // A client that went away after its release gets no answer.
  log.add([{ event: 'released', request: 10, time: at(97000), client: 'A', operation: 'Put Blob' }]);
  eq('not yet', log.waiting().length, 1);
  now = Date.UTC(2026, 0, 1) + 110000;
  eq('gone', log.waiting().length, 0);
}

async function blame() {
  const { blameWords, entryOf } = await from('log');
  const line = (cause) => blameWords(entryOf(answered('REST 127.0.0.1:9', 0, 1, { status: 412, refusal: { rule: 'condition', message: `It is not met. [latchfs: ${cause}]` } })));
  eq('the client first', line('changed 0.8 s ago by Put Blob, client request 5f-1, azsdk-python-storage-blob/12.31 Python/3.13 (Linux, x86), from 127.0.0.1:5'),
    'python-storage-blob (127.0.0.1:5): changed 0.8 s ago by Put Blob');
  eq('without an ID', line('leased 3.0 s ago by Lease Blob (acquire), curl/8, from [::1]:5'), 'curl ([::1]:5): leased 3.0 s ago by Lease Blob (acquire)');
  eq('of a queue', line('the message was last changed 3.0 s ago by Get Messages, from 127.0.0.1:5; it is hidden until Mon, 05 Jan'), '127.0.0.1:5: the message was last changed 3.0 s ago by Get Messages; it is hidden until Mon, 05 Jan');
  eq('another cause', line('"excel" (pid 9) has it open'), '"excel" (pid 9) has it open');
}

async function lanes() {
  const { Log } = await from('log');
  const { orderView, timeView } = await from('lanes');
  const log = new Log(() => {}, () => 0);
  log.add(Array.from({ length: 5000 }, (_, n) => answered('127.0.0.1:1', n, n + 0.5, { status: n === 2500 ? 409 : 200 })));
  const end = Date.UTC(2026, 0, 1) + 5000;
  const dense = timeView(log, { width: 600, span: 5000, end }).lanes[0].bars;
  if (dense.length > 202) throw new Error(`${dense.length} bars of 600 pixels`);
  eq('the refusal is seen', dense.filter((bar) => bar.entry.refused && bar.mixed).length, 1);
  // Connections of which no process is known share the lane of their user agent.
  log.add(Array.from({ length: 50 }, (_, n) => answered(`127.0.0.1:${1000 + n}`, 4900 + n, 4901 + n, { user_agent: 'curl/8' })));
  eq('shared', timeView(log, { width: 600, span: 5000, end }).lanes.map((lane) => lane.name), ['sdk', 'curl']);
  // Connections of one process and user agent share a lane, also those of before the process was known.
  log.add([answered('REST 127.0.0.1:7', 4960, 4961), answered('REST 127.0.0.1:7', 4962, 4963, { pid: 42, program: 'node' }), answered('REST 127.0.0.1:8', 4964, 4965, { pid: 42, program: 'node' }), answered('REST 127.0.0.1:8', 4966, 4967, { pid: 42, program: 'node', user_agent: 'other/1' })]);
  const ofProcess = orderView(log, { width: 600, column: 10, back: 0 }).lanes.filter((lane) => lane.name === 'node 42');
  eq('a process, by user agent', ofProcess.map(({ about, bars }) => [about, bars.length]), [['sdk', 3], ['other', 1]]);
  // While one waits, the lanes of others that have nothing to do with it are left out.
  log.add([{ event: 'gated', request: 3, time: at(4990), client: 'REST 127.0.0.1:9', operation: 'Put Blob', path: 'docs/b', user_agent: 'late/1' }, answered('REST 127.0.0.1:10', 4991, 4992, { path: 'docs/b', user_agent: 'rival/1' })]);
  const { lanes: kept, idle } = log.focus();
  const view = timeView(log, { width: 600, span: 5000, end, focus: kept });
  eq('that wait, then the others', view.lanes.map((lane) => lane.name), ['late', 'rival']);
  eq('idle', idle, 4);
}

async function names() {
  const { placeNames } = await from('lanes');
  const placed = placeNames([{ x: 90, wide: 40 }, { x: 30, wide: 40 }, { x: 10, wide: 40 }, { x: 500, wide: 40 }, { x: -1, wide: 40 }, { x: 290, wide: 40 }], 300);
  eq('in view, a row each where they would overlap', placed.map(({ x, left, row }) => [x, left, row]), [[10, 14, 0], [30, 34, 1], [90, 94, 0], [290, 244, 0]]);
}

async function scale() {
  const { scaleOf } = await from('locks');
  const locks = [{ start: 1073741824, length: 1 }, { start: 0, length: 100 }, { start: 2147483648, length: null }];
  const { at: place, offsets, places } = scaleOf(locks);
  eq('grows', places, [...places].sort((x, y) => x - y));
  eq('ends', [place(0), place(null), Math.round(places.at(-1))], [0, 1000, 1000]);
  eq('offsets', offsets, [0, 100, 1073741824, 1073741825, 2147483648]);
  if (place(1073741825) - place(1073741824) < 15) throw new Error('one byte cannot be seen');
}

const all = [sse, spans, bounds, order, blame, lanes, names, scale];
for (const test of all) await test();
return all.length;
