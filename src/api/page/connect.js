// The dialog with the connection string and a tree of what is stored. Decides how a level is shown;
// what a level contains is decided by the server.

import { get } from './api.js';
import { $, bytes, copied, el } from './dom.js';

/** Kinds that have a level below them. */
const FOLDERS = new Set(['container', 'prefix', 'queue', 'table', 'share', 'directory']);

export async function openConnect() {
  if ($('connect').open) return;
  $('connect').showModal();
  const how = $('connect-how');
  fill($('connect-tree'));
  try {
    const { connection_string: text, ca_file: authority } = await get('connection');
    how.replaceChildren(
      el('p', { class: 'muted' }, 'The connection string for SDKs, az and other clients of Azure Storage:'),
      copied(text, 'Copy the connection string'),
      el('p', { class: 'muted' }, 'In a shell:'),
      copied('export AZURE_STORAGE_CONNECTION_STRING="$(latchfs connection-string)"', 'Copy the command'),
      authority ? el('p', {}, `Clients must trust the certificate ${authority}`) : '');
  } catch (error) {
    how.replaceChildren(el('p', {}, error.message));
  }
}

/** Fills a list with what is below `object`; the account without one. */
async function fill(list, object) {
  try {
    const { objects, more } = await get('objects', { object });
    const rows = objects.map((row) => entry(row, object));
    if (more) rows.push(el('li', { class: 'muted' }, 'and more: latchfs ls shows all'));
    list.replaceChildren(...(rows.length > 0 ? rows : [el('li', { class: 'muted' }, object ? 'empty' : 'Nothing is stored yet.')]));
  } catch (error) {
    list.replaceChildren(el('li', { class: 'bad' }, error.message));
  }
}

function entry({ object, kind, length, text }, above) {
  // Below a folder, the part of the address that the folder does not have.
  const name = above ? object.slice(above.length).replace(/^\//, '') || object : object.replace(/^\w+:/, '');
  const about = [above && kind !== 'directory' ? '' : kind, length === undefined ? '' : bytes(length), text ?? ''].filter(Boolean).join(' ');
  const words = [el('span', { class: 'mono', title: object }, name), el('span', { class: 'muted about', title: text }, about)];
  if (!FOLDERS.has(kind)) return el('li', {}, ...words);
  const inside = el('ul');
  const node = el('details', {}, el('summary', {}, ...words), inside);
  node.addEventListener('toggle', () => { if (node.open) fill(inside, object); });
  return el('li', {}, node);
}
