import assert from 'node:assert/strict';
import test from 'node:test';

import { batches } from '../assets/chat/batches.js';

async function* events(count, failure = null) {
  for (let at = 0; at < count; at += 1) yield at;
  if (failure) throw failure;
}

test('events that come at once are drawn once, and in their order', async () => {
  const found = [];
  for await (const batch of batches(events(1_000))) found.push(batch);
  assert.ok(found.length <= 2, `${found.length}`);
  assert.deepEqual(found.flat(), [...Array(1_000).keys()]);
});

test('a click is handled while events come without a pause', async () => {
  let clicked = false;
  setTimeout(() => {
    clicked = true;
  });
  async function* endless() {
    for (;;) {
      yield 'event';
      await new Promise((go) => setImmediate(go));
    }
  }
  for await (const batch of batches(endless(), 5)) {
    assert.ok(batch.length > 0);
    if (clicked) break;
  }
});

test('the events before an error are shown before it', async () => {
  const found = [];
  const all = async () => {
    for await (const batch of batches(events(3, new Error('broke off')))) found.push(...batch);
  };
  await assert.rejects(all, { message: 'broke off' });
  assert.deepEqual(found, [0, 1, 2]);
});
