import assert from 'node:assert/strict';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';
import { View } from '../assets/services/page.js';

test('another account can be let act in place of a chosen one that is refused, and only one that works', async () => {
  aPage();
  const draw = async (connection) => {
    const service = { name: 'Gmail', description: 'Mail.', categories: [], connection, connection_kind: { type: 'pipedream', app: 'gmail' }, tools: 1 };
    const api = { read: async () => ({ items: [service], next_cursor: null }) };
    render(html`<${View} api=${api} slug="acme" role="owner" at=${{ id: 'Gmail', query: {} }} />`, document.body);
    for (let turn = 0; turn < 10; turn += 1) await settled();
    const text = document.body.textContent;
    const buttons = document.body.all(({ attributes }) => attributes.id?.startsWith('acts-')).map(({ attributes }) => attributes.id);
    render(null, document.body);
    return { text, buttons };
  };
  const refused = { id: 'apn_a', name: 'ana@acme.example' };
  const works = { id: 'apn_b', name: 'bo@acme.example' };
  const one = await draw({ state: 'expired', accounts: [refused], working: [works] });
  assert.match(one.text, /ana@acme\.example Expired.*bo@acme\.example Let it act/s);
  assert.match(one.text, /Let another one act\..*Connect another account/s);
  assert.deepEqual(one.buttons, ['acts-1']);
  const none = await draw({ state: 'expired', accounts: [refused, works] });
  assert.match(none.text, /until it is connected again\..*Connect it again/s);
  assert.deepEqual(none.buttons, []);
});
