import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { BrokenOff, runEvents, runInput } from '../assets/chat/ag_ui.js';
import { applied, conversation } from '../assets/chat/conversation.js';
import { inPieces } from './bytes.js';

const fixture = new URL('../../../tests/fixtures/agui_streams.json', import.meta.url);
const { vectors } = JSON.parse(readFileSync(fixture, 'utf8'));

/** What a reader sees of a conversation, in the form in which AG-UI's own client keeps messages. */
function seen(items) {
  return items.map((item) =>
    item.kind === 'call'
      ? { call: item.id, name: item.name, arguments: item.arguments, ...(item.result !== undefined && { result: item.result }) }
      : { message: item.id, role: item.role, text: item.text },
  );
}

function expected(messages) {
  const found = [];
  for (const { id, role, content, toolCalls = [], toolCallId } of messages) {
    if (role === 'tool') {
      Object.assign(found.find((one) => one.call === toolCallId), { result: content });
      continue;
    }
    if (toolCalls.length === 0 || content) found.push({ message: id, role, text: content ?? '' });
    for (const call of toolCalls) found.push({ call: call.id, name: call.function.name, arguments: call.function.arguments });
  }
  return found;
}

/** Where AG-UI's client refuses a stream as a whole, we show what there is. */
const LENIENT = {
  outcome_cancelled: [],
  null_optional_name: [{ message: 'm1', role: 'assistant', text: 'a' }],
  float_timestamp: [],
  finish_with_open_message: [{ message: 'm1', role: 'assistant', text: 'a' }],
  content_without_start: [{ message: 'm1', role: 'assistant', text: 'a' }],
  event_after_run_error: [],
  crlf_framing: [{ message: 'm1', role: 'assistant', text: 'a' }],
};

for (const { name, body, status, chunk, observed } of vectors.filter((vector) => vector.status === undefined)) {
  test(`a run is read as AG-UI's own client reads it: ${name}`, async () => {
    const theirs = observed['ag-ui-client-1.0.0'];
    for (const size of [1, chunk ?? 5, Infinity]) {
      let shown = conversation('thread-1');
      for await (const event of runEvents(inPieces(body, size))) shown = applied(shown, event);
      const wanted = LENIENT[name] ?? expected(theirs.messages_after ?? []);
      assert.deepEqual(seen(shown.items), wanted);
      assert.equal(shown.run, null);
      assert.ok(shown.items.every((item) => ['whole', 'cut', 'over'].includes(item.state)), 'nothing is left growing');
    }
    assert.ok(theirs.accepted || name in LENIENT, 'say in LENIENT what is shown of it');
    assert.equal(status, undefined);
  });
}

const START = 'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n';
const WORDS = 'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hel"}\n\n';

test('a stream that ends before its run does broke off, and what came is kept', async () => {
  for (const end of ['', 'data: {"type":\n\n', 'data: [DONE]\n\n', 'data: null\n\n', ': nothing\n\n']) {
    let shown = conversation('t');
    await assert.rejects(async () => {
      for await (const event of runEvents(inPieces(START + WORDS + end))) shown = applied(shown, event);
    }, BrokenOff);
    assert.deepEqual(seen(shown.items), [{ message: 'm', role: 'assistant', text: 'Hel' }]);
  }
  const torn = new ReadableStream({
    pull: (controller) => controller.error(new TypeError('network error')),
  });
  await assert.rejects(async () => {
    for await (const _ of runEvents(torn));
  }, BrokenOff);
});

test('what a person aborts has not broken off', async () => {
  const aborted = new ReadableStream({
    pull: (controller) => controller.error(new DOMException('aborted', 'AbortError')),
  });
  await assert.rejects(
    async () => {
      for await (const _ of runEvents(aborted));
    },
    { name: 'AbortError' },
  );
});

test('a run is asked for with a message or with a decision', () => {
  const said = runInput({ thread: 't', run: 'r', message: { id: 'u1', text: 'Hi' } });
  const common = { threadId: 't', runId: 'r', state: {}, tools: [], context: [], forwardedProps: {} };
  assert.deepEqual(said, { ...common, messages: [{ id: 'u1', role: 'user', content: 'Hi' }] });
  const decided = runInput({ thread: 't', run: 'r', decision: { id: 'i1', approved: false } });
  const resume = [{ interruptId: 'i1', status: 'resolved', payload: { approved: false } }];
  assert.deepEqual(decided, { ...common, messages: [], resume });
});
