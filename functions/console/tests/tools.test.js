import assert from 'node:assert/strict';
import test from 'node:test';

import { occasionOf, parametersOf, typeOf } from '../assets/tools/words.js';

test('a tool says what it does and when', () => {
  assert.deepEqual(['sms', 'of_a_newer_version'].map((type) => typeOf({ type })), ['Sends SMS', 'of_a_newer_version']);
  const occasions = [[true, true], [true, false], [false, true]].map(([execute_on_call_start, attach_to_agent]) => occasionOf({ execute_on_call_start, attach_to_agent }));
  assert.deepEqual(occasions, ['When a call starts, and when the model calls it', 'When a call starts', 'When the model calls it']);
});

test('what the model fills in has its type, and whether it must', () => {
  const function_schema = { parameters: { type: 'object', properties: { when: { type: 'string', format: 'date-time', description: 'The day' }, note: { type: 'string' } }, required: ['when'] } };
  assert.deepEqual(parametersOf({ function_schema }), [
    { name: 'when', type: 'string, date-time', description: 'The day', required: true },
    { name: 'note', type: 'string', description: '', required: false },
  ]);
  assert.deepEqual(parametersOf({ function_schema: null }), []);
});
