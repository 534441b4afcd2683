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

const GMAIL = { name: 'Gmail', description: 'Mail.', categories: [], connection: { state: 'expired', accounts: [{ id: 'a', name: 'ana' }] }, connection_kind: { type: 'pipedream', app: 'gmail' }, tools: 1 };

/** The place with this service; an act reads it again. */
async function place(context, query) {
  const known = { service: GMAIL, links: 0 };
  aPage();
  context.after(() => render(null, document.body));
  const api = { read: async () => ({ items: [known.service], next_cursor: null }), act: async () => ({ url: `https://in.example/${(known.links += 1)}` }) };
  const go = async (query) => {
    render(html`<${View} api=${api} slug="acme" role="owner" at=${{ id: 'Gmail', query }} />`, document.body);
    await settled();
  };
  await go(query);
  const press = async (id) => (document.body.at(id).fire('click'), settled());
  return { known, go, press, at: (id) => document.body.at(id) };
}

test('a link to sign in can be had anew, and goes once an account is connected', async (context) => {
  const { known, press, at } = await place(context, {});
  await press('connect');
  assert.equal(at('connect-link').attributes.href, 'https://in.example/1');
  await press('new-link');
  assert.equal(at('connect-link').attributes.href, 'https://in.example/2');
  const becomes = async (connection) => {
    known.service = { ...GMAIL, connection };
    await press('disconnect-0');
    await press('disconnect-0-yes');
  };
  await becomes({ ...GMAIL.connection, working: [{ id: 'b', name: 'bo' }] });
  assert.ok(!at('connect-link'), 'another account is connected');
  await press('connect');
  assert.ok(at('connect-link'));
  await becomes({ ...GMAIL.connection, state: 'connected' });
  assert.ok(!at('connect-link'), 'the same account is let in again');
});

test('the search shows the word of the address, and makes an address of a whole word only', async (context) => {
  const { go, at } = await place(context, { q: 'mail' });
  assert.equal(at('seek').value, 'mail');
  at('seek').fire('input', { value: 'mai' });
  await new Promise((later) => setTimeout(later, 350));
  assert.equal(location.hash, '');
  at('seek').fire('change', { value: ' slack ' });
  assert.match(location.hash, /q=slack/);
  await go({ q: 'sheets' });
  assert.equal(at('seek').value, 'sheets');
});
