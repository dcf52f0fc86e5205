// Explorations: the order in which a test fails, as a picture with a lane for each client and a column
// for each step, and a box that shows what a token replays. What an order is, is decided in the server.

import { copied, el, plural, say } from './dom.js';

/** The most steps of a token that are drawn. */
const STEPS_MAX = 200;

/** The steps of a token: `A2.B.A!.+16~3ef9`. `clients`: those that are known. Null if it is none. */
export function readToken(text, clients = []) {
  const found = /^([^~]*)~[0-9a-f]{4}$/i.exec(text.trim());
  if (!found) return null;
  const steps = [];
  for (const part of found[1].split('.').filter(Boolean)) {
    const read = readPart(part, clients);
    if (!read || steps.length + read.count > STEPS_MAX) return null;
    for (let i = 0; i < read.count; i += 1) steps.push(read.step);
  }
  return steps.length > 0 ? steps : null;
}

function readPart(part, clients) {
  if (/^\+\d+(ms)?$/.test(part)) return { step: { client: 'clock', choice: part }, count: 1 };
  if (/^\^./.test(part)) return { step: { client: part.slice(1), choice: part }, count: 1 };
  const known = clients.filter((name) => part.startsWith(name)).sort((a, b) => b.length - a.length)[0];
  // A count behind a star leaves the digits before it to the name: `w1*2` is w1 twice.
  const name = known ?? (part.includes('*') ? part.split(/[/*]/)[0] : /^.*?[^\d/!](?=[\d/!]*$)/.exec(part)?.[0]);
  const rest = name && /^(\/\d+)?(?:(!)|\*?(\d+))?$/.exec(part.slice(name.length));
  if (!rest) return null;
  const [, nth = '', drop = '', count = 1] = rest;
  return { step: { client: name, choice: `${name}${nth}${drop}` }, count: Number(count) };
}

/** What is special about a step, besides its request. */
function mark({ client, choice }) {
  if (client === 'clock') return ['clock', `${choice}${choice.endsWith('ms') ? '' : ' s'}`];
  if (choice.endsWith('!')) return ['lost', 'answer lost'];
  if (choice.startsWith('^')) return ['', 'starts'];
  return ['', ''];
}

/** The steps as a picture: from left to right in their order, each in the lane of its client. */
function picture(steps) {
  const clients = [...new Set(steps.map((step) => step.client))].sort((a, b) => (a === 'clock') - (b === 'clock') || a.localeCompare(b));
  const words = steps.map(({ client, operation, choice }) => `${client} ${operation || choice}`).join(', ');
  const node = el('div', { class: 'order', role: 'img', tabindex: '0', 'aria-label': `The order: ${words}` });
  node.style.gridTemplateColumns = `auto repeat(${steps.length}, minmax(92px, 1fr))`;
  clients.forEach((client, lane) => {
    const row = `grid-row: ${lane + 2}`;
    node.append(placed(el('div', { class: 'order-line' }), row), placed(el('b', { class: 'order-name' }, client), `${row}; grid-column: 1`));
  });
  steps.forEach((step, at) => {
    const [kind, text] = mark(step);
    const status = step.status ? [el('span', { class: step.status >= 400 ? 'bad' : 'muted' }, String(step.status))] : [];
    const column = `grid-column: ${at + 2}`;
    node.append(
      placed(el('span', { class: 'order-number muted' }, String(at + 1)), `grid-row: 1; ${column}`),
      placed(el('div', { class: `order-step ${kind}` }, el('b', {}, step.operation || text || step.choice), ' ', ...status,
        // The name alone: what it is in, is the same in most steps.
        step.object ? el('span', { class: 'mono order-object', title: step.object }, step.object.replace(/^[^/]*\//, '')) : '',
        step.operation && text ? el('span', { class: kind === 'lost' ? 'bad' : 'held' }, text) : ''), `grid-row: ${clients.indexOf(step.client) + 2}; ${column}`));
  });
  return node;
}

/** Places a node in the grid: through the object model, which the policy of the page permits. */
function placed(node, style) {
  node.style.cssText = style;
  return node;
}

/** How a token is replayed, with each of the clients that there are. */
const commands = (token) => [
  `pytest TEST --latchfs-schedule '${token}'`,
  `latchfs explore --replay '${token}' ...`,
  `await latchfs.explore(test, { path: '${token}' })`,
];

/** What is known of an exploration, in a line. */
function verdict(one) {
  const runs = plural(one.runs, 'run');
  if (one.failure) return ['bad', `Fails in the order ${one.failure.token}, found in run ${one.failure.run}.`];
  if (!one.done && !one.ended) return ['muted', `${runs} so far.`];
  return one.complete ? ['good', `Passes in all ${runs}, which are all orders that matter.`] : ['held', `Passes in ${runs}; not complete.`];
}

export class ExplorePanel {
  #last = el('div', { class: 'explored' });
  #said = el('div', { class: 'explored', role: 'status' });
  #input = el('input', { type: 'text', placeholder: 'A.B2.A~3ef9', autocomplete: 'off', spellcheck: 'false', 'aria-label': 'Token' });
  #shown = '';
  #rows = [];

  constructor(host) {
    this.#input.addEventListener('input', () => this.#read());
    host.append(this.#last, el('label', { class: 'field grow token-field' }, el('span', { class: 'label' }, 'Token'), this.#input), this.#said);
  }

  draw(rows) {
    this.#rows = rows;
    const text = JSON.stringify(rows.map(({ read, ...row }) => row));
    if (text === this.#shown) return;
    this.#shown = text;
    this.#last.replaceChildren(...rows.flatMap((one) => {
      const [tone, words] = verdict(one);
      // A search that has found an order ends, and needs no other reason.
      const notes = [...(one.failure ? [] : one.incomplete ?? []), ...one.notes ?? []];
      return [
        el('p', { class: tone }, words, one.failure?.signature ? ` ${one.failure.signature}` : ''),
        one.failure ? picture(one.failure.order) : '',
        ...(one.failure ? commands(one.failure.token).map((command) => copied(command, `Copy ${command}`)) : []),
        ...notes.map((note) => el('p', { class: 'muted' }, note)),
      ].filter(Boolean);
    }));
    this.#read();
  }

  /** Shows what the token in the box replays. */
  #read() {
    const text = this.#input.value.trim();
    const known = this.#rows.find((one) => one.failure?.token === text)?.failure.order;
    const steps = known ?? readToken(text, this.#rows.flatMap((one) => one.clients));
    if (text === '') this.#said.replaceChildren();
    else if (!steps) say(this.#said, 'This is no token. A whole one ends in ~ and four digits, as in A.B2.A~3ef9.');
    else this.#said.replaceChildren(picture(steps), ...commands(text).map((command) => copied(command, `Copy ${command}`)));
  }
}

export const EXPLORE_SECTION = {
  id: 'explorations',
  name: 'Explore',
  make: (host) => new ExplorePanel(host),
  empty: ['Nothing was explored.', 'A test that is explored runs in every order of its clients\u2019 requests that matters; the order in which it fails is drawn here.', ['pytest test_race.py', 'latchfs explore --help']],
};
