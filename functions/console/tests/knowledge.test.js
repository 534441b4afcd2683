import assert from 'node:assert/strict';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';
import { View } from '../assets/knowledge/page.js';

test('a file in another encoding is not sent, and the page says how to save it', async () => {
  aPage();
  const base = { id: 'b', name: 'Homes', description: '', entries: 0, fields: [], agent_ids: [], version: 1, updated_at: '2026-11-27T10:00:00Z' };
  const sent = [];
  const read = async (path) => (path === 'knowledge-bases/b' ? base : { items: [], next_cursor: null });
  const api = { read, send: async (...all) => (sent.push(all), { loaded: 1, refused_rows: 0, refused: [] }) };
  render(html`<${View} api=${api} slug="acme" role="owner" at=${{ id: 'b', query: {} }} />`, document.body);
  await settled();
  const load = async (bytes) => {
    document.body.at('load-file').fire('change', { files: [new Blob([Uint8Array.from(bytes)])] });
    await settled();
    document.body.at('load').fire('click');
    await settled();
    return document.body.all(({ attributes }) => attributes.role === 'alert').map(({ textContent }) => textContent);
  };
  assert.deepEqual(await load([0x74, 0x65, 0x78, 0x74, 0x0a, 0xe9]), ['The table is not UTF-8 text; save it as "CSV UTF-8".']);
  assert.equal(sent.length, 0);
  assert.deepEqual(await load([0xef, 0xbb, 0xbf, 0x74, 0x65, 0x78, 0x74, 0x0a, 0x61]), []);
  assert.deepEqual(sent, [['POST', 'knowledge-bases/b/entries', 'text\na', 'text/csv']]);
  render(null, document.body);
});

test('entries are shown page by page, and each can be deleted', async (context) => {
  aPage();
  context.after(() => render(null, document.body));
  const base = { id: 'b', name: 'Homes', description: '', entries: 120, fields: [], agent_ids: [], version: 1, updated_at: '2026-11-27T10:00:00Z' };
  let entries = Array.from({ length: 120 }, (_, place) => ({ id: `H-${place + 100}`, text: 'A home', values: {} }));
  const deleted = [];
  const read = async (path, { cursor, limit } = {}) => {
    if (path === 'knowledge-bases/b') return { ...base, entries: entries.length };
    if (path !== 'knowledge-bases/b/entries') return { items: [], next_cursor: null };
    const from = Number(cursor ?? 0);
    return { items: entries.slice(from, from + limit), next_cursor: from + limit < entries.length ? String(from + limit) : null };
  };
  const act = async (method, path) => {
    deleted.push([method, path]);
    entries = entries.filter(({ id }) => !path.endsWith(id));
  };
  render(html`<${View} api=${{ read, act }} slug="acme" role="owner" at=${{ id: 'b', query: {} }} />`, document.body);
  await settled();
  const rows = () => document.body.all(({ localName, attributes }) => localName === 'th' && attributes.scope === 'row').map(({ textContent }) => textContent);
  const more = () => document.body.all(({ attributes }) => 'data-more' in attributes)[0];
  assert.deepEqual([rows().length, rows()[0]], [50, 'H-100']);
  for (const shown of [100, 120]) {
    more().fire('click');
    await settled();
    assert.equal(rows().length, shown);
  }
  assert.equal(more(), undefined);
  document.body.at('delete-entry-119').fire('click');
  await settled();
  assert.match(document.body.textContent, /Delete H-219\?/);
  document.body.at('delete-entry-119-yes').fire('click');
  await settled();
  assert.deepEqual([deleted, rows().length, rows().at(-1)], [[['DELETE', 'knowledge-bases/b/entries/H-219']], 119, 'H-218']);
  assert.match(document.body.textContent, /Entries119/);
});
