// Gates, faults and states: lists with forms, and the strip of requests that wait at gates. Decides
// what the forms send; what the server makes of it is in docs/api.md.

import { call, change, note } from './api.js';
import { $, button, busy, countdown, dateTime, el, parseSpan, plural, say, span } from './dom.js';
import { clientName, noteProcess, outcome, shortAgent, withAgent } from './log.js';

const OPERATIONS = ['Put Blob', 'Get Blob', 'Delete Blob', 'Put Block', 'Put Block List', 'Append Block', 'Put Page', 'Lease Blob', 'Set Blob Metadata', 'Copy Blob', 'Create Container', 'Lease Container', 'List Blobs',
  'Create File', 'Get File', 'Put Range', 'Delete File', 'Lease File', 'Put Message', 'Get Messages', 'Update Message', 'Delete Message', 'Peek Messages',
  'Insert Entity', 'Update Entity', 'Merge Entity', 'Delete Entity', 'Query Entities', 'Get *', 'Put *', '*'];

/** The most waiting requests in the band; three in a narrow window. */
const WAITING_MAX = 8;

const field = (label, control, kind = '') => el('label', { class: `field ${kind}` }, el('span', { class: 'label' }, label), control);
const input = (name, props = {}) => el('input', { name, autocomplete: 'off', spellcheck: 'false', ...props });
const select = (name, options) => el('select', { name }, ...options.map(([value, text]) => el('option', { value }, text)));

/** The fields that say which requests a gate or a fault is about. */
function matching() {
  return [
    field('Operation', input('operation', { list: 'operations', placeholder: 'Put Blob, Get *', required: true })),
    field('Path', input('path', { placeholder: 'docs/*, any if empty' })),
    field('Service', select('service', [['', 'Any'], ['file', 'File'], ['blob', 'Blob'], ['queue', 'Queue'], ['table', 'Table']])),
    field('Header', input('header', { placeholder: 'if-match: *' })),
  ];
}

/** The body that `matching` stands for. Throws with what is wrong. */
function matched(form) {
  const { operation, path, service, header } = form.elements;
  const body = { operation: operation.value.trim() };
  if (path.value.trim()) body.path = path.value.trim();
  if (service.value) body.service = service.value;
  if (header.value.trim()) {
    const found = /^([^:\s]+)\s*:\s*(.+)$/.exec(header.value.trim());
    if (!found) throw new Error('Write the header as NAME: PATTERN, as in if-match: *');
    body.headers = { [found[1].toLowerCase()]: found[2] };
  }
  return body;
}

function integer(form, name, what) {
  const text = form.elements[name].value.trim();
  if (!text) return undefined;
  if (!/^\d+$/.test(text)) throw new Error(`${what} must be a whole number.`);
  return Number(text);
}

/** A form whose submit runs `send(form)`; an error is shown in the form. */
function formOf(label, controls, send, submit) {
  const error = el('p', { class: 'form-error', role: 'alert' });
  const go = el('button', { type: 'submit', class: 'primary' }, submit);
  const form = el('form', { class: 'bench-form', 'aria-label': label, novalidate: true }, el('div', { class: 'fields' }, ...controls, el('div', { class: 'submit' }, go)), error);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    busy(go, async () => {
      say(error, '');
      try {
        if (form.elements.operation && !form.elements.operation.value.trim()) throw new Error('Name an operation, as in Put Blob; * stands for any letters.');
        await send(form);
      } catch (problem) {
        say(error, problem.message);
      }
    });
  });
  return form;
}

/** Which requests a gate or fault is about, as text. */
export function requestsWords({ operation, path, service, account, headers }) {
  return [operation ?? '*', path ?? '**', service ? `of ${service}` : '', account ? `in ${account}` : '', ...Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`)].filter(Boolean).join('  ');
}

/** What a fault does, as text. */
export function actionWords(action) {
  if (action === 'drop_before') return 'drop before the operation';
  if (action === 'drop_after') return 'drop after the commit';
  if (action?.answer) return `answer ${action.answer.status} ${action.answer.code}`;
  if (action?.delay_ms !== undefined) return `delay ${span(action.delay_ms)}`;
  if (action?.cut_bytes !== undefined) return `cut after ${action.cut_bytes} bytes`;
  if (action?.bytes_per_second !== undefined) return `${action.bytes_per_second} bytes a second`;
  return JSON.stringify(action);
}

/** A list above a form; `rowOf(item)` gives an element, made again only when the data differs. */
class FormPanel {
  #items = el('div', { class: 'items' });
  #add;
  #shown = null;
  #rowOf;

  constructor(host, form, rowOf) {
    this.#rowOf = rowOf;
    this.#add = el('details', { class: 'add' }, el('summary', {}, form.getAttribute('aria-label')), form);
    host.append(this.#items, this.#add);
  }

  draw(rows) {
    const text = JSON.stringify(rows.map(({ read, waiting, ...row }) => [row, waiting?.length]));
    if (text === this.#shown) return;
    if (this.#shown === null) this.#add.open = rows.length === 0;
    this.#shown = text;
    // A row that had the focus is made again: its button of the same name gets the focus back.
    const label = this.#items.contains(document.activeElement) ? document.activeElement.getAttribute('aria-label') : null;
    this.#items.replaceChildren(...rows.map(this.#rowOf));
    if (label) [...this.#items.querySelectorAll('button')].find((node) => node.getAttribute('aria-label') === label)?.focus();
  }
}

function item(title, lines, actions) {
  return el('div', { class: 'item still' },
    el('div', { class: 'main' }, el('div', { class: 'line1' }, ...title), el('div', { class: 'line2' }, lines.filter(Boolean).join(' · '))),
    el('div', { class: 'act' }, ...actions));
}

function gatesPanel(host, context) {
  const form = formOf('Add a gate', [
    ...matching(),
    field('Stops', select('at', [['received', 'received: before its checks'], ['committed', 'committed: not yet answered']]), 'wide'),
    field('Times', input('times', { inputmode: 'numeric', placeholder: 'all', size: '5' })),
    field('Limit', input('limit', { placeholder: '60s', size: '6' })),
  ], async (node) => {
    const body = { ...matched(node), at: node.elements.at.value, times: integer(node, 'times', 'Times') };
    if (node.elements.limit.value.trim()) {
      body.limit_ms = parseSpan(node.elements.limit.value);
      if (body.limit_ms === null) throw new Error('Write the limit as 30s, 5m or 500ms.');
    }
    const { gate } = await call('POST', 'gates', { body });
    note(`Gate ${gate} is there: requests for ${body.operation} stop.`);
    context.refresh(['gates']);
  }, 'Add gate');
  return new FormPanel(host, form, (gate) => {
    const waiting = gate.waiting?.length ?? 0;
    return item(
      [el('b', {}, `Gate ${gate.id}`), ' ', el('span', { class: 'mono' }, requestsWords(gate.requests))],
      [`stops at ${gate.at}`, `${waiting} waiting`, `${gate.stopped} stopped so far`, gate.times === null || gate.times === undefined ? '' : `${gate.times} more`, `limit ${span(gate.limit_ms)}`],
      [waiting > 0 ? button('Let all go', async () => {
        if (await change('POST', `gates/${gate.id}/release`, {}, (answer) => `${plural(answer.released, 'request')} went on.`)) context.refresh(['gates']);
      }, { class: 'small', 'aria-label': `Let all requests at gate ${gate.id} go` }) : null,
      button('Remove', async () => {
        if (await change('DELETE', `gates/${gate.id}`, undefined, `Gate ${gate.id} was removed; requests that waited there went on.`)) context.refresh(['gates']);
      }, { class: 'danger small', 'aria-label': `Remove gate ${gate.id}` })].filter(Boolean));
  });
}

const FAULTS = [
  ['drop_after', 'Lose the answer (drop after the commit)'], ['drop_before', 'Drop the connection before the operation'], ['answer', 'Answer with a status and code'],
  ['delay_ms', 'Delay'], ['cut_bytes', 'Cut the body short'], ['bytes_per_second', 'Slow down the body'],
];

function faultAction(form) {
  const kind = form.elements.action.value;
  const value = form.elements.value.value.trim();
  if (kind.startsWith('drop')) return kind;
  if (kind === 'answer') {
    const found = /^(\d{3})\s*[:\s]\s*(\S+)$/.exec(value);
    if (!found) throw new Error('Write the answer as STATUS:CODE, as in 503:ServerBusy.');
    return { answer: { status: Number(found[1]), code: found[2] } };
  }
  if (kind === 'delay_ms') {
    const ms = parseSpan(value);
    if (ms === null) throw new Error('Write the delay as 500ms or 2s.');
    return { delay_ms: ms };
  }
  if (!/^\d+$/.test(value)) throw new Error('Write the number of bytes.');
  return { [kind]: Number(value) };
}

function faultsPanel(host, context) {
  const value = input('value', { size: '12' });
  const valueField = field('Value', value);
  const action = select('action', FAULTS);
  const explain = () => {
    const hint = { answer: ['Answer', '503:ServerBusy'], delay_ms: ['Delay by', '2s'], cut_bytes: ['After bytes', '100'], bytes_per_second: ['Bytes a second', '1000'] }[action.value];
    valueField.hidden = !hint;
    if (hint) [valueField.firstChild.textContent, value.placeholder] = hint;
  };
  action.addEventListener('change', explain);
  explain();
  const form = formOf('Add a fault', [
    ...matching(), field('What happens', action, 'wide'), valueField,
    field('Times', input('times', { inputmode: 'numeric', placeholder: 'all', size: '5' })),
    field('Probability', input('probability', { inputmode: 'decimal', placeholder: '1', size: '5' })),
    field('Seed', input('seed', { inputmode: 'numeric', placeholder: 'any', size: '5' })),
  ], async (node) => {
    const body = { ...matched(node), action: faultAction(node), times: integer(node, 'times', 'Times'), seed: integer(node, 'seed', 'Seed') };
    const chance = node.elements.probability.value.trim();
    if (chance) {
      body.probability = Number(chance);
      if (!(body.probability >= 0 && body.probability <= 1)) throw new Error('The probability is a number from 0 to 1.');
    }
    const { fault } = await call('POST', 'faults', { body });
    note(`Fault ${fault} is there.`);
    context.refresh(['faults']);
  }, 'Add fault');
  return new FormPanel(host, form, (fault) => item(
    [el('b', {}, `Fault ${fault.id}`), ' ', el('span', { class: 'mono' }, requestsWords(fault.requests))],
    [actionWords(fault.action), fault.times !== undefined && fault.times !== null ? `${fault.times} more` : '', fault.probability !== undefined && fault.probability !== null ? `probability ${fault.probability}${fault.seed !== undefined && fault.seed !== null ? `, seed ${fault.seed}` : ''}` : '', `met ${fault.met} times`],
    [button('Remove', async () => {
      if (await change('DELETE', `faults/${fault.id}`, undefined, `Fault ${fault.id} was removed.`)) context.refresh(['faults']);
    }, { class: 'danger small', 'aria-label': `Remove fault ${fault.id}` })],
  ));
}

function statesPanel(host, context) {
  const form = formOf('Save the state', [field('Name', input('name', { placeholder: 'seeded', required: true, maxlength: '64' }))], async (node) => {
    const name = node.elements.name.value.trim();
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(name)) throw new Error('A name has 1 to 64 of A-Z, a-z, 0-9, dot, underscore and hyphen.');
    await call('PUT', `states/${encodeURIComponent(name)}`);
    note(`State ${name} was saved.`);
    context.refresh(['states']);
  }, 'Save state');
  const reset = button('Reset everything…', async () => {
    const sure = await context.confirm('Reset the server?', 'Every account becomes empty: files, blobs, messages and entities are deleted, open handles are closed, gates, faults and holds are removed, and the clock goes back to the system\u2019s. Saved states stay.', 'Reset');
    if (sure && await change('POST', 'reset', {}, 'The server is empty.')) context.refresh();
  }, { class: 'danger', id: 'reset' });
  form.querySelector('.submit').append(reset);
  return new FormPanel(host, form, (state) => item(
    [el('b', { class: 'mono' }, state.name)],
    [state.damaged ? `damaged: ${state.damaged}` : `saved ${dateTime(Date.parse(state.saved))} UTC`],
    [button('Restore', async () => {
      const sure = await context.confirm(`Restore ${state.name}?`, 'What the services hold now is replaced. Open handles are closed, and requests that wait at gates end.', 'Restore');
      if (sure && await change('POST', `states/${encodeURIComponent(state.name)}/restore`, {}, `State ${state.name} was restored.`)) context.refresh();
    }, { class: 'small', 'aria-label': `Restore state ${state.name}` }),
    button('Delete', async () => {
      const sure = await context.confirm(`Delete the saved state ${state.name}?`, 'The server itself does not change.', 'Delete');
      if (sure && await change('DELETE', `states/${encodeURIComponent(state.name)}`, undefined, `State ${state.name} was deleted.`)) context.refresh(['states']);
    }, { class: 'danger small', 'aria-label': `Delete state ${state.name}` })],
  ));
}

export const BENCH_SECTIONS = [
  { id: 'gates', name: 'Gates', make: gatesPanel, empty: ['No gates.', 'A request that matches a gate stops there until you let it go, so that the order of two clients is your choice. The same by command:', ['latchfs gate add \'Put Blob\' \'docs/*\'']] },
  { id: 'faults', name: 'Faults', make: faultsPanel, empty: ['No faults.', 'A request that matches a fault fails, comes late or loses its answer: the case that breaks retry logic. The same by command:', ['latchfs fault add \'Put Blob\' --drop after --times 1']] },
  { id: 'states', name: 'States', make: statesPanel, empty: ['No saved states.', 'Save what the services hold now, and come back to it before each test. The same by command:', ['latchfs state save seeded', 'latchfs state restore seeded']] },
];

/** The list that the forms suggest operations from. */
export function operationsList() {
  return el('datalist', { id: 'operations' }, ...OPERATIONS.map((name) => el('option', { value: name })));
}

const named = (request) => withAgent(clientName(request), shortAgent(request.user_agent));

/** The band of requests that wait at gates. */
export class GatedStrip {
  #host = $('gated');
  #rows = new Map();
  #title = el('h2');
  #all = button('Let all go', () => this.#releaseAll(), { class: 'go small' });
  #items = el('div', { class: 'gated-items' });
  #more = el('p', { class: 'muted' });
  #context;

  constructor(context) {
    this.#context = context;
    this.#host.append(el('header', {}, this.#title, this.#all), this.#items, this.#more);
  }

  /** Requests that wait, oldest first. */
  waiting() {
    return this.#context.state.data.gates
      .flatMap((gate) => (gate.waiting ?? []).map((one) => ({ ...one, gate: gate.id, point: gate.at, limit: gate.limit_ms, read: gate.read })))
      .sort((a, b) => b.waits_ms - a.waits_ms);
  }

  draw() {
    const all = this.waiting();
    this.#host.hidden = all.length === 0;
    if (all.length === 0 && this.#rows.size === 0) return;
    say(this.#title, `${plural(all.length, 'request waits', 'requests wait')} at ${new Set(all.map((one) => one.gate)).size === 1 ? `gate ${all[0]?.gate}` : 'gates'}`);
    this.#all.hidden = all.length < 2;
    const shown = all.slice(0, innerWidth <= 640 ? 3 : WAITING_MAX);
    const wanted = new Set(shown.map((one) => one.request));
    for (const [id, row] of this.#rows) if (!wanted.has(id) && this.#rows.delete(id)) row.remove();
    for (const one of shown) this.#row(one, all);
    say(this.#more, all.length > shown.length ? `and ${all.length - shown.length} more` : '');
  }

  #row(one, all) {
    let row = this.#rows.get(one.request);
    if (!row) {
      row = el('div', { class: 'gated-row' },
        el('b', {}, one.operation), el('span', { class: 'mono path', title: one.path }, one.path), el('span', { class: 'who' }), el('span', { class: 'muted rival' }), el('span', { class: 'muted left' }),
        button('', () => this.release(one.request), { class: 'small' }));
      this.#rows.set(one.request, row);
      this.#items.append(row);
    }
    const [, , who, rivalNode, leftNode, go] = row.children;
    noteProcess(one);
    say(who, named(one));
    const others = all.filter((other) => other !== one && other.path === one.path).map(named).map((name) => (name === named(one) ? 'another request of it' : name));
    const rival = others.length > 0 ? null : this.#context.rivalOf(one);
    const last = rival ? `last ${rival.operation} ${outcome(rival)} by ${withAgent(rival.who, rival.agent)} ${span(this.#context.state.systemNow() - rival.at)} ago` : '';
    say(rivalNode, others.length > 0 ? `against ${others.slice(0, 2).join(', ')}${others.length > 2 ? ` and ${others.length - 2} more` : ''}` : last || `${one.point}, gate ${one.gate}`);
    const left = (one.limit - one.waits_ms - (performance.now() - one.read)) / 1000;
    say(leftNode, Number.isFinite(left) ? `goes on in ${countdown(left)}` : '');
    say(go, all.length > 1 ? 'Let this one go first' : 'Let go');
    go.setAttribute('aria-label', `${go.textContent}: ${one.operation} ${one.path} of ${who.textContent}`);
    go.classList.toggle('go', all.length === 1);
  }

  async release(request) {
    await change('POST', `requests/${request}/release`, {}, '');
    this.#context.refresh(['gates']);
  }

  async #releaseAll() {
    for (const gate of new Set(this.waiting().map((one) => one.gate))) await change('POST', `gates/${gate}/release`, {}, '');
    this.#context.refresh(['gates']);
  }

  /** Lets the request go that waits longest. */
  releaseFirst() {
    const first = this.waiting()[0];
    if (first) this.release(first.request);
  }
}
