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
