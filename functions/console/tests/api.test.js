import assert from 'node:assert/strict';
import test from 'node:test';

import { Api } from '../assets/shell/api.js';

function answers(context, list) {
  const asked = [];
  context.mock.method(globalThis, 'fetch', async (address, { headers }) => {
    asked.push(headers['if-none-match'] ?? null);
    return list[asked.length - 1]();
  });
  return asked;
}
const given = (body, tag) => () => new Response(JSON.stringify(body), { headers: tag ? { etag: tag } : {} });
const unchanged = () => new Response(null, { status: 304 });

test('an answer that has not changed is the same object, and another person gets their own', async (context) => {
  globalThis.document = { baseURI: 'http://page/' };
  const asked = answers(context, [given({ items: [1] }, '"a"'), unchanged, given({ items: [2] }, '"b"'), given({ items: [3] }, '"b"'), given({ items: [4] })]);
  const api = new Api({ token: async () => 'x' }, 'http://stream');
  api.organization = 'acme';
  const first = await api.read('calls', { limit: 5 });
  assert.equal(await api.read('calls', { limit: 5 }), first);
  assert.deepEqual(await api.read('calls', { limit: 5 }), { items: [2] });
  api.forget();
  api.organization = 'acme';
  await api.read('calls', { limit: 5 });
  await api.read('runs');
  assert.deepEqual(asked, [null, '"a"', '"a"', null, null]);
  delete globalThis.document;
});

test('requests of an organization stay its own, whichever is entered meanwhile', async (context) => {
  globalThis.document = { baseURI: 'http://page/' };
  const asked = [];
  context.mock.method(globalThis, 'fetch', async (address, { headers }) => (asked.push([address, headers['x-organization']]), new Response('{}')));
  const api = new Api({ token: async () => 'x' }, 'http://stream');
  const acme = api.within('acme');
  api.organization = 'other';
  await acme.act('POST', 'erasures', {});
  await acme.threads();
  assert.deepEqual(asked, [['http://page/api/acme/erasures', 'acme'], ['http://page/agent/threads?limit=30', 'acme']]);
  assert.throws(() => { acme.organization = 'other'; }, TypeError);
  delete globalThis.document;
});
