import assert from 'node:assert/strict';
import test from 'node:test';

import { eventData, Silence } from '../assets/chat/sse.js';
import { all, inPieces } from './bytes.js';

const FRAMES = [
  ['data: a\n\ndata: b\n\n', ['a', 'b']],
  ['data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b']],
  ['data: a\r\rdata: b\r\r', ['a', 'b']],
  ['data: a\ndata:b\ndata\n\n', ['a\nb\n']],
  ['data:  two blanks\n\n', [' two blanks']],
  [': keep-alive\n\nevent: x\nid: 1\nretry: 5\ndata: a\n\n: end\n\n', ['a']],
  ['data: olá 👍 日本\n\n', ['olá 👍 日本']],
  ['data: not closed', ['not closed']],
  ['data: not closed\n', ['not closed']],
  ['database: 7\n\n', []],
  ['Lambda-Runtime-Function-Error-Type: Runtime.StreamError\r\n', []],
  ['', []],
];

test('events are read however their bytes come', async () => {
  for (const [text, expected] of FRAMES) {
    for (const size of [1, 2, 3, 7, Infinity]) {
      assert.deepEqual(await all(eventData(inPieces(text, size))), expected, `${JSON.stringify(text)} by ${size}`);
    }
  }
});

test('a connection that says nothing for too long is given up', async () => {
  let cancelled = false;
  const silent = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode('data: a\n\n')),
    cancel: () => {
      cancelled = true;
    },
  });
  const given = [];
  await assert.rejects(async () => {
    for await (const data of eventData(silent, 30)) given.push(data);
  }, Silence);
  assert.deepEqual([given, cancelled], [['a'], true]);
});

test('comments keep a connection alive', async () => {
  let left = 6;
  const slow = new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      controller.enqueue(new TextEncoder().encode(left > 0 ? ': keep-alive\n\n' : 'data: a\n\n'));
      if (left === 0) controller.close();
      left -= 1;
    },
  });
  assert.deepEqual(await all(eventData(slow, 600)), ['a']);
});
