import assert from 'node:assert/strict';
import test, { beforeEach } from 'node:test';

import { discover } from '../assets/session/issuer.js';
import { redeem } from '../assets/session/identity.js';
import { Api } from '../assets/shell/api.js';
import { Poller } from '../assets/shell/poller.js';
import { sheet } from '../assets/shell/sheet.js';
import { Unreachable } from '../assets/shell/unreachable.js';

const LONGEST = 40_000;

beforeEach(() => {
  globalThis.document = { baseURI: 'http://page/', visibilityState: 'visible', addEventListener() {}, removeEventListener() {} };
});

/** A connection on which nothing comes after `answer`, if that is given. */
function silent(context, answer = null) {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const fetch = context.mock.method(globalThis, 'fetch', (_, { signal }) => new Promise((come, fail) => {
    signal.addEventListener('abort', () => fail(signal.reason));
    if (answer) come(answer(signal));
  }));
  const api = Object.assign(new Api({ token: async () => 'x' }, 'http://stream'), { organization: 'acme' });
  return { api, fetch };
}

const turn = () => new Promise((go) => setImmediate(go));

/** The error that it ends with after exactly so long. */
async function endOf(context, promise, milliseconds) {
  let error = null;
  promise.catch((cause) => { error = cause; });
  await turn();
  context.mock.timers.tick(milliseconds - 1);
  await turn();
  assert.equal(error, null, 'it ended too early');
  context.mock.timers.tick(1);
  await turn();
  return error;
}

test('a reading without an answer ends as one that cannot be reached', async (context) => {
  const { api } = silent(context);
  const error = await endOf(context, api.read('calls'), LONGEST);
  assert.ok(error instanceof Unreachable);
  assert.match(error.message, /then try again/);
});

test('an answer that stops in the middle ends, too', async (context) => {
  const stopped = (signal) => new Response(new ReadableStream({ start: (body) => signal.addEventListener('abort', () => body.error(signal.reason)) }));
  const { api } = silent(context, stopped);
  assert.ok((await endOf(context, api.read('calls'), LONGEST)) instanceof Unreachable);
});

test('an act without an answer says that it may have been done, and a table has longer', async (context) => {
  const { api } = silent(context);
  for (const [act, milliseconds] of [[() => api.act('POST', 'tools', {}), LONGEST], [() => api.act('DELETE', 'tools/1'), LONGEST], [() => api.send('POST', 'knowledge-bases/1/entries', 'id', 'text/csv'), 300_000]]) {
    const error = await endOf(context, act(), milliseconds);
    assert.ok(error instanceof Unreachable);
    assert.match(error.message, /may have been made all the same: look before you make it again/);
  }
});

test('a stream must begin in time and may then last, and a person ends it at once', async (context) => {
  const late = silent(context);
  const error = await endOf(context, late.api.run({ thread: 't', run: 'r' }).next(), LONGEST);
  assert.ok(error instanceof Unreachable);
  assert.match(error.message, /then try again/, 'a message is sent again under its own id');
  const quit = new AbortController();
  const left = late.api.run({ thread: 't', run: 'r', signal: quit.signal }).next();
  await turn();
  quit.abort();
  await assert.rejects(left, { name: 'AbortError' });
  context.mock.restoreAll();
  context.mock.timers.reset();
  let body;
  const { api } = silent(context, () => new Response(new ReadableStream({ start: (made) => { body = made; } })));
  const events = api.run({ thread: 't', run: 'r' });
  const first = events.next();
  await turn();
  context.mock.timers.tick(LONGEST + 5_000);
  body.enqueue(new TextEncoder().encode('data: {"type":"RUN_STARTED"}\n\n'));
  assert.deepEqual((await first).value, { type: 'RUN_STARTED' });
  await events.return();
});

test('a list tells that its reading has failed, and asks again', async (context) => {
  const { api, fetch } = silent(context);
  const told = [];
  const poller = new Poller({ read: () => api.read('calls'), told: ({ error }) => told.push(error), every: () => 3_000 });
  await endOf(context, poller.start(), LONGEST);
  assert.ok(told.length === 1 && told[0] instanceof Unreachable, String(told));
  context.mock.timers.tick(6_000);
  await turn();
  assert.equal(fetch.mock.callCount(), 2);
  poller.stop();
});

test('the issuer and the files of the page have a limit, too', async (context) => {
  silent(context);
  document.head = { append() {} };
  document.createElement = () => ({});
  const pending = { verifier: 'v', redirect_uri: 'http://page/' };
  for (const asked of [() => discover('http://issuer/c'), () => redeem({ token_endpoint: 'http://issuer/t' }, { client_id: 'c', code: 'c', pending }), () => sheet('console/a.css')]) {
    assert.ok((await endOf(context, asked(), LONGEST)) instanceof Unreachable);
  }
});
