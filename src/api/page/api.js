// Calls of the admin API. Decides the headers, the token, the account, and how a refusal becomes a
// message; which calls are made is decided by the panels.

import { el, $ } from './dom.js';

/** The name that the server shows for changes made by this page. */
const CLIENT = 'page';
/** How long a message stays. */
const NOTE_MS = 6000;
const NOTES_MAX = 4;

export const session = {
  token: new URLSearchParams(location.search).get('token'),
  account: null,
};

/** An answer other than 2xx. `status` 0: the server was not reached. */
export const apiError = (status, message) => Object.assign(new Error(message), { status });

/** The address of a call, with the account that is looked at unless another one is named. */
export function address(path, query = {}, account = session.account) {
  const url = new URL(`/api/v1/${path}`, location.origin);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') url.searchParams.set(name, value);
  }
  if (account) url.searchParams.set('account', account);
  return url;
}

/** The headers of each call. */
export function headers(more = {}) {
  return { ...(session.token ? { authorization: `Bearer ${session.token}` } : {}), ...more };
}

/** Makes a call; gives the answer's JSON, or throws `error with a status`. */
export async function call(method, path, { body, query, signal } = {}) {
  const more = method === 'GET' ? {} : { 'x-latchfs-client': CLIENT, 'content-type': 'application/json' };
  let answer;
  try {
    answer = await fetch(address(path, query), {
      method,
      signal,
      headers: headers(more),
      body: method === 'GET' || method === 'DELETE' ? undefined : JSON.stringify(body ?? {}),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw apiError(0, 'The server does not answer. The page tries again by itself.');
  }
  const text = await answer.text();
  let json = null;
  try {
    json = text ? JSON.parse(text) : {};
  } catch {
    throw apiError(answer.status, `The server answered ${answer.status} without JSON.`);
  }
  if (!answer.ok) throw apiError(answer.status, json?.error?.message ?? `The server answered ${answer.status}.`);
  return json;
}

export const get = (path, query) => call('GET', path, { query });

/** Shows a message for a while. `tone`: 'good' or 'bad'. */
export function note(text, tone = 'good') {
  const close = () => node.remove();
  const node = el('div', { class: `note ${tone}` }, el('span', {}, text),
    el('button', { type: 'button', class: 'quiet', 'aria-label': 'Dismiss', on: { click: close } }, '×'));
  const notes = $('notes');
  notes.append(node);
  while (notes.children.length > NOTES_MAX) notes.firstChild.remove();
  setTimeout(close, tone === 'bad' ? NOTE_MS * 2 : NOTE_MS);
}

/** Makes a change and says what came of it. True if it was done. */
export async function change(method, path, body, said) {
  try {
    const answer = await call(method, path, { body });
    if (said) note(typeof said === 'function' ? said(answer) : said);
    return true;
  } catch (error) {
    note(error.message, 'bad');
    return false;
  }
}
