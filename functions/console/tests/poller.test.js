import assert from 'node:assert/strict';
import test from 'node:test';

import { Poller } from '../assets/shell/poller.js';

function page() {
  const listeners = new Set();
  return {
    visibilityState: 'visible',
    addEventListener: (_name, listener) => listeners.add(listener),
    removeEventListener: (_name, listener) => listeners.delete(listener),
    show(visibilityState) {
      this.visibilityState = visibilityState;
      for (const listener of listeners) listener();
    },
    listeners,
  };
}

const told = () => {
  const all = [];
  return { all, tell: (what) => all.push(what.error ? 'error' : what.data) };
};
const tick = (context, milliseconds) => {
  context.mock.timers.tick(milliseconds);
  return new Promise((done) => setImmediate(done));
};

test('it reads until the data are final', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { all, tell } = told();
  let reads = 0;
  const poller = new Poller({ read: async () => ++reads, told: tell, every: (data) => (data === 3 ? null : 1000), page: page() });
  await poller.start();
  for (let second = 0; second < 6; second += 1) await tick(context, 1000);
  assert.deepEqual(all, [1, 2, 3]);
});

test('a hidden page is not read for, and is read at once when it is looked at', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { all, tell } = told();
  const hidden = page();
  let reads = 0;
  const poller = new Poller({ read: async () => ++reads, told: tell, every: () => 1000, page: hidden });
  await poller.start();
  hidden.show('hidden');
  await tick(context, 1000);
  await tick(context, 60_000);
  assert.deepEqual(all, [1]);
  hidden.show('visible');
  await tick(context, 0);
  assert.deepEqual(all, [1, 2]);
  poller.stop();
  assert.equal(hidden.listeners.size, 0);
});

test('failures make it slower, and what comes after its end is dropped', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { all, tell } = told();
  let fails = true;
  const poller = new Poller({ read: async () => (fails ? Promise.reject(new Error('down')) : 'data'), told: tell, every: () => 1000, page: page() });
  await poller.start();
  await tick(context, 1999);
  assert.deepEqual(all, ['error']);
  await tick(context, 1);
  await tick(context, 3999);
  assert.deepEqual(all, ['error', 'error'], 'the third try waits four seconds');
  fails = false;
  await poller.now();
  assert.equal(all.at(-1), 'data');
  const last = poller.now();
  poller.stop();
  await last;
  assert.equal(all.filter((what) => what === 'data').length, 1);
});

test('data that are read once are asked for again after a failure, and not at once', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { all, tell } = told();
  let reads = 0;
  const poller = new Poller({ read: async () => (++reads === 1 ? Promise.reject(new Error('down')) : 'data'), told: tell, every: () => null, page: page() });
  await poller.start();
  await tick(context, 2_000);
  assert.deepEqual(all, ['error']);
  await tick(context, 60_000);
  await tick(context, 60_000);
  assert.deepEqual([all, reads], [['error', 'data'], 2]);
});

test('unchanged data are told again only after a while, or after a failure', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const { all, tell } = told();
  const same = { name: 'same' };
  let fails = false;
  const poller = new Poller({ read: async () => (fails ? Promise.reject(new Error('down')) : same), told: tell, every: () => 1000, page: page() });
  await poller.start();
  for (let second = 0; second < 5; second += 1) await tick(context, 1000);
  assert.deepEqual(all, [same]);
  fails = true;
  await poller.now();
  fails = false;
  await poller.now();
  assert.deepEqual(all, [same, 'error', same]);
  for (let second = 0; second < 21; second += 1) await tick(context, 1000);
  assert.equal(all.length, 4, 'ages in words grow');
  poller.stop();
});
