// Decides how DOM nodes are made and how values are written as text. All text that comes from the
// server reaches the page through `textContent` or `setAttribute`, never through HTML.

/** Finds an element of index.html by its id. */
export const $ = (id) => document.getElementById(id);

/**
 * Makes an element. Keys of `props`: `class`, `on` (listeners by event name); any other key is an
 * attribute, left out if the value is null, undefined or false.
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'class') node.className = value;
    else if (name === 'on') for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const SVG = 'http://www.w3.org/2000/svg';

/** Makes an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Sets a node's text, if it differs. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A button that runs `action` and is disabled meanwhile. */
export function button(label, action, props = {}) {
  const node = el('button', { type: 'button', ...props }, label);
  node.addEventListener('click', () => busy(node, action));
  return node;
}

/** Runs `action` with `node` disabled, and keeps the keyboard focus on it. */
export async function busy(node, action) {
  if (node.disabled) return;
  const focused = document.activeElement === node;
  node.disabled = true;
  try {
    await action();
  } finally {
    node.disabled = false;
    if (focused && node.isConnected && document.activeElement === document.body) node.focus();
  }
}

/** What to show where there is nothing: a sentence, and commands that can be copied. */
export function emptyState(node, title, text, commands = []) {
  node.replaceChildren(
    el('p', { class: 'empty-title' }, title),
    text ? el('p', { class: 'muted' }, text) : '',
    ...commands.map((command) => copied(command, `Copy the command ${command}`)),
  );
}

/** A text with a button that copies it. */
export function copied(text, label) {
  return el('div', { class: 'command' }, el('code', {}, text),
    button('Copy', () => navigator.clipboard?.writeText(text).catch(() => {}), { class: 'quiet', 'aria-label': label }));
}

/** A number of bytes in the largest unit that it has one of. */
export function bytes(n) {
  const at = Math.min(4, Math.floor(Math.log2(Math.max(1, n)) / 10));
  return at === 0 ? `${n} B` : `${(n / 1024 ** at).toFixed(1)} ${'KMGT'[at - 1]}iB`;
}

/** What this browser remembers under `key`; null if nothing, or if the browser forbids it. */
export function remembered(key) {
  try {
    return localStorage.getItem(`latchfs.${key}`);
  } catch {
    return null;
  }
}

/** Has this browser remember a choice, if the browser permits it. */
export function remember(key, value) {
  try {
    localStorage.setItem(`latchfs.${key}`, value);
  } catch {
    // The choice then lasts as long as the page.
  }
}

const two = (n) => String(n).padStart(2, '0');

/** A moment (ms) as HH:MM:SS.mmm, UTC. */
export function clockTime(ms, digits = 3) {
  if (!Number.isFinite(ms)) return '';
  const date = new Date(ms);
  const base = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`;
  return digits ? `${base}.${String(date.getUTCMilliseconds()).padStart(3, '0').slice(0, digits)}` : base;
}

/** A moment (ms) as YYYY-MM-DD HH:MM:SS, UTC. */
export function dateTime(ms) {
  return Number.isFinite(ms) ? `${new Date(ms).toISOString().slice(0, 10)} ${clockTime(ms, 0)}` : '';
}

/** A length of time (ms) in at most two units. */
export function span(ms) {
  const s = Math.abs(ms) / 1000;
  const sign = ms < 0 ? '−' : '';
  if (s < 0.001) return `${sign}${Math.round(s * 1e6)} µs`;
  if (s < 1) return `${sign}${s < 0.1 ? (s * 1000).toFixed(1) : Math.round(s * 1000)} ms`;
  if (s < 10) return `${sign}${s.toFixed(1)} s`;
  if (s < 60) return `${sign}${Math.floor(s)} s`;
  if (s < 3600) return `${sign}${Math.floor(s / 60)} min ${two(Math.floor(s % 60))} s`;
  if (s < 86400) return `${sign}${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} min`;
  return `${sign}${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

/** Seconds left as M:SS, rounded up, so that 0:00 means the end. */
export function countdown(seconds) {
  const left = Math.max(0, Math.ceil(seconds - 1e-6));
  if (left >= 86400) return `${Math.floor(left / 86400)} d`;
  if (left >= 3600) return `${Math.floor(left / 3600)}:${two(Math.floor(left / 60) % 60)}:${two(left % 60)}`;
  return `${Math.floor(left / 60)}:${two(left % 60)}`;
}

/** Reads `90s`, `5m`, `2h`, `250ms`, `1d`, `61` (seconds); null if it is none of these. */
export function parseSpan(text) {
  const found = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?\s*$/i.exec(text);
  if (!found) return null;
  const unit = { ms: 1, s: 1000, m: 60000, min: 60000, h: 3600000, d: 86400000 }[(found[2] ?? 's').toLowerCase()];
  return Math.round(Number(found[1]) * unit);
}

/** An integer with separators. */
export const count = (n) => Number(n).toLocaleString('en-US');

/** `1 handle`, `2 handles`. */
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
