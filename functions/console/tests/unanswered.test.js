import assert from 'node:assert/strict';
import test from 'node:test';

import { fate, isRecent, Unanswered } from '../assets/chat/unanswered.js';

function storage() {
  const kept = new Map();
  return { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, String(value)) };
}

test('a message is kept with its name, by thread, until it is forgotten', () => {
  const place = storage();
  const kept = new Unanswered(place);
  assert.equal(kept.of('t'), null);
  kept.keep('t', { id: 'm1', text: 'Hi' }, 1, 1_000);
  kept.keep('u', { id: 'm2', text: 'Ho' }, 4, 2_000);
  assert.deepEqual(new Unanswered(place).of('t'), { id: 'm1', text: 'Hi', asked: 1, at: 1_000 }, 'a reload loses nothing');
  kept.forget('t');
  assert.deepEqual([kept.of('t'), kept.of('u').id], [null, 'm2']);
  place.setItem('switchboard.unanswered', 'no JSON');
  assert.equal(kept.of('u'), null);
});

test('what has become of a message is read from the thread', () => {
  const message = (role, text, state = 'whole') => ({ kind: 'message', role, text, state });
  const [hi, yes, answer] = [message('user', 'Hi'), message('user', 'yes'), message('assistant', 'Hello')];
  for (const [items, more, text, asked, expected] of [
    [[], {}, 'Hi', 1, 'absent'],
    [[hi], {}, 'Hi', 1, 'open'],
    [[hi, answer], {}, 'Hi', 1, 'answered'],
    [[hi, { kind: 'call' }], {}, 'Hi', 1, 'open'],
    [[hi, message('assistant', 'Hel', 'cut')], {}, 'Hi', 1, 'open'],
    [[hi, message('assistant', 'The model is away.', 'failed')], {}, 'Hi', 1, 'failed'],
    [[hi], { waiting: { id: 'i' } }, 'Hi', 1, 'answered'],
    [[yes, answer], {}, 'yes', 2, 'absent'],
    [[yes, answer, yes, answer], {}, 'yes', 2, 'answered'],
    [[yes, answer], { earlier: '101' }, 'yes', 102, 'answered'],
    [[hi, answer, yes], {}, 'Hi', 1, 'absent'],
  ]) {
    assert.equal(fate({ items, ...more }, { text, asked }), expected, JSON.stringify([items, more, text, asked]));
  }
});

test('only a young message goes out again by itself', () => {
  assert.ok(isRecent({ at: 1_000 }, 60_000));
  assert.ok(!isRecent({ at: 1_000 }, 3_600_000));
});
