import assert from 'node:assert/strict';
import test from 'node:test';

import { applied, conversation, ended, lastAnswer, ofThread, said, unsaid, withEarlier } from '../assets/chat/conversation.js';

const after = (events, before = conversation('t')) => events.reduce(applied, before);
const started = { type: 'RUN_STARTED', threadId: 't', runId: 'r' };
const finished = { type: 'RUN_FINISHED', threadId: 't', runId: 'r' };
const words = (messageId, delta) => [
  { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
];

test('a message is being sent until the run begins, and gone if it was not taken', () => {
  const asked = said(conversation('t'), { id: 'u1', text: 'Hi' });
  assert.equal(asked.items[0].state, 'sending');
  assert.equal(after([started], asked).items[0].state, 'whole');
  assert.deepEqual(unsaid(asked, 'u1').items, []);
  assert.equal(said(asked, { id: 'u1', text: 'Hi' }).items.length, 1, 'the same message again is one');
});

test('an answer grows, and the steps to it are told', () => {
  let shown = after([started, { type: 'STEP_STARTED', stepName: 'plan' }]);
  assert.deepEqual(shown.run, { id: 'r', step: 'plan' });
  shown = after([{ type: 'STEP_FINISHED', stepName: 'plan' }, ...words('m', 'Hel')], shown);
  assert.deepEqual([shown.run.step, shown.items[0].state], [null, 'growing']);
  shown = after([{ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'lo' }, { type: 'TEXT_MESSAGE_END', messageId: 'm' }, finished], shown);
  assert.deepEqual(shown.items, [{ kind: 'message', id: 'm', role: 'assistant', text: 'Hello', state: 'whole' }]);
  assert.equal(lastAnswer(shown), 'Hello');
});

test('a call is seen when it is made and when it has answered', () => {
  const call = [
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'look_up' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{"name":' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '"Ada"}' },
  ];
  const states = [];
  let shown = conversation('t');
  for (const event of [started, ...call, { type: 'TOOL_CALL_END', toolCallId: 'c' }]) {
    shown = applied(shown, event);
    states.push(shown.items[0]?.state);
  }
  assert.deepEqual(states, [undefined, 'calling', 'calling', 'calling', 'running']);
  assert.equal(shown.items[0].arguments, '{"name":"Ada"}');
  const result = { type: 'TOOL_CALL_RESULT', messageId: 'x', toolCallId: 'c', content: '{"found":1}' };
  const [plain] = after([result], shown).items;
  assert.deepEqual([plain.state, plain.outcome, plain.result], ['over', 'succeeded', '{"found":1}']);
  const failed = { type: 'CUSTOM', name: 'tool_outcome', value: { toolCallId: 'c', outcome: 'failed' } };
  assert.equal(after([result, failed], shown).items[0].outcome, 'failed');
  assert.equal(after([finished], shown).items[0].outcome, 'unknown', 'one that never answered');
});

test('a receipt stands under the answer, and one that says nothing does not', () => {
  const told = (value) => after([started, ...words('m', 'Sent.'), { type: 'CUSTOM', name: 'receipt', value }, finished]).items.slice(1);
  const receipt = { entries: [{ tool: 'send_sms', label: 'Send', effect: true, state: 'done', text: 'Sent an SMS to +1.' }] };
  assert.deepEqual(told(receipt), [{ kind: 'receipt', id: 'r-receipt', receipt }]);
  assert.deepEqual(told({ entries: [], no_action: true }).map((item) => item.receipt.no_action), [true]);
  for (const nothing of [{ entries: [] }, null, undefined, {}]) assert.deepEqual(told(nothing), []);
});

test('a turn that somebody else began is told, and what comes of it', () => {
  const messages = [{ id: '1', role: 'user', content: 'Hi' }];
  const running = { type: 'CUSTOM', name: 'running', value: { message_id: 'm', message: 'Hi', since: 'x', calls: [] } };
  const shown = after([started, { type: 'MESSAGES_SNAPSHOT', messages }, running]);
  assert.deepEqual(shown.followed, { id: 'm', text: 'Hi' });
  const over = after([...words('a', 'Hello'), finished], shown);
  assert.deepEqual([over.followed, over.items.map((item) => item.text)], [null, ['Hi', 'Hello']]);
});

test('older messages come in above, and what is known already is not shown twice', () => {
  const note = { id: 'e', role: 'system', content: 'Earlier messages are not shown.', metadata: { next_cursor: '3' } };
  const messages = [note, { id: '3', role: 'user', content: 'three' }, { id: '4', role: 'assistant', content: 'cut', metadata: { incomplete: true } }];
  let shown = after([started, { type: 'MESSAGES_SNAPSHOT', messages }, finished]);
  assert.deepEqual([shown.earlier, shown.items.length, shown.items[1].state], ['3', 2, 'incomplete']);
  const receipt = { entries: [], no_action: true };
  const page = {
    items: [
      { number: 2, role: 'assistant', content: 'two', tools: [{ tool: 'look_up', outcome: 'failed' }], widget: { type: 'list', items: [] }, metadata: { receipt } },
      { number: 1, role: 'user', content: 'one', tools: [], widget: null, metadata: null },
      { number: 0, role: 'unknown', content: 'of a newer version', tools: [], widget: null },
    ],
    next_cursor: '0',
  };
  shown = withEarlier(withEarlier(shown, page), page);
  assert.deepEqual(shown.items.map((item) => item.text ?? item.kind), ['one', 'call', 'widget', 'two', 'receipt', 'three', 'cut']);
  assert.deepEqual([shown.earlier, shown.items[1].outcome, shown.items[1].arguments], ['0', 'failed', null]);
  assert.equal(ofThread('t', page).items.length, 5);
});

test('what waits for consent is named, and another message withdraws the question', () => {
  const interrupt = {
    id: 'i1', reason: 'tool_consent', message: 'May I?', expiresAt: '2026-11-22T15:00:00.000Z',
    metadata: { tool: 'send_sms', label: 'Send reminder', arguments: { text: 'Hi' }, shows: [{ name: 'Text', value: 'Hi', fixed: false }] },
  };
  const shown = after([started, { ...finished, outcome: { type: 'interrupt', interrupts: [interrupt] } }]);
  assert.deepEqual(shown.waiting, {
    id: 'i1', message: 'May I?', tool: 'send_sms', label: 'Send reminder', shows: [{ name: 'Text', value: 'Hi', fixed: false }],
    arguments: { text: 'Hi' }, expires: '2026-11-22T15:00:00.000Z',
  });
  assert.equal(said(shown, { id: 'u2', text: 'Wait' }).waiting, null);
  for (const outcome of [undefined, null, { type: 'success' }, { type: 'interrupt' }, { type: 'of a newer version' }]) {
    assert.equal(after([started, { ...finished, outcome }]).waiting, null);
  }
});

test('a run that fails says why, and what it said is marked as cut', () => {
  const shown = after([started, ...words('m', 'par'), { type: 'RUN_ERROR', message: 'The model is away.', code: 'upstream' }]);
  assert.deepEqual([shown.failure, shown.run], [{ message: 'The model is away.', code: 'upstream' }, null]);
  assert.equal(shown.items[0].state, 'cut');
  assert.equal(after([started], shown).failure, null);
  assert.equal(ended(after([started, ...words('m', 'par')])).items[0].state, 'cut');
});

test('a history takes the place of what was shown', () => {
  const messages = [
    { id: '0', role: 'system', content: 'Earlier messages are not shown.' },
    { id: '1', role: 'user', content: 'Who is Ada?' },
    { id: '2', role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: { name: 'look_up', arguments: '{}' } }] },
    { id: '3', role: 'tool', toolCallId: 'c', content: '"found"' },
    { id: '4', role: 'activity', activityType: 'widget', content: { type: 'list', items: [] } },
    { id: '5', role: 'assistant', content: 'A customer.' },
    { id: '6', role: 'user', content: [{ type: 'text', text: 'And' }, { type: 'image' }, { type: 'text', text: 'Bob?' }] },
    { id: '7', role: 'of a newer version', content: {} },
  ];
  const shown = after([started, { type: 'MESSAGES_SNAPSHOT', messages }, finished], said(conversation('t'), { id: 'u', text: 'x' }));
  assert.deepEqual(shown.items.map(({ kind, role, text }) => [kind, role ?? null, text ?? null]), [
    ['note', null, 'Earlier messages are not shown.'],
    ['message', 'user', 'Who is Ada?'],
    ['call', null, null],
    ['widget', null, null],
    ['message', 'assistant', 'A customer.'],
    ['message', 'user', 'And\nBob?'],
  ]);
  assert.deepEqual([shown.items[2].outcome, shown.items[2].result], ['succeeded', '"found"']);
});

test('events that nobody knows change nothing', () => {
  const shown = after([started, ...words('m', 'a')]);
  for (const event of [
    { type: 'STATE_DELTA', delta: [] },
    { type: 'ACTIVITY_SNAPSHOT', messageId: 'a', activityType: 'of another program', content: {} },
    { type: 'CUSTOM', name: 'other', value: 7 },
    { type: 'TOOL_CALL_RESULT', toolCallId: 'nobody', content: 'x' },
    { type: 'SOMETHING_NEW' },
  ]) {
    assert.deepEqual(applied(shown, event), shown, event.type);
  }
});
