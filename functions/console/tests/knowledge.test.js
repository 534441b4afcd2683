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
