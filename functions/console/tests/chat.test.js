import assert from 'node:assert/strict';
import test from 'node:test';

import { BrokenOff } from '../assets/chat/ag_ui.js';
import { Refused, SignInNeeded } from '../assets/shell/problems.js';
import { Unreachable } from '../assets/shell/unreachable.js';
import { store } from '../assets/shell/store.js';

const kept = new Map();
globalThis.sessionStorage = {
  getItem: (name) => kept.get(name) ?? null,
  setItem: (name, value) => kept.set(name, String(value)),
  removeItem: (name) => kept.delete(name),
};
const { BEGINNING, Chat } = await import('../assets/chat/chat.js');

const started = { type: 'RUN_STARTED', runId: 'r' };
const finished = { type: 'RUN_FINISHED', runId: 'r' };
const said = (delta, messageId = 'a') => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta });
const snapshot = (...messages) => ({ type: 'MESSAGES_SNAPSHOT', messages });
const question = { id: 'q', role: 'user', content: 'Hi' };
const receipt = { entries: [{ tool: 'send_sms', label: 'Send', state: 'done', text: 'Sent an SMS.' }] };

/** An API whose runs and histories are scripts: lists of events, or an error at their end. */
function api({ runs = [], histories = [], threads = [], readOnly = null, messages = {} }) {
  const asked = [];
  async function* play(script = []) {
    for (const step of script) {
      if (step instanceof Error) throw step;
      yield step;
    }
  }
  return {
    asked,
    organization: null,
    threads: async (cursor) => ({ items: threads.slice(Number(cursor ?? 0), Number(cursor ?? 0) + 2), next_cursor: threads.length > Number(cursor ?? 0) + 2 ? String(Number(cursor ?? 0) + 2) : null }),
    whyReadOnly: async () => readOnly,
    messages: async (thread, cursor) => messages[cursor ?? 'newest'],
    history: (input) => (asked.push(['history', input.thread]), play(histories.shift() ?? [started, finished])),
    run: (input) => (asked.push(['run', input.message?.id ?? input.decision]), play(runs.shift() ?? [started, finished])),
  };
}

async function opened(script, { thread = 't', before = [] } = {}) {
  kept.clear();
  kept.set('switchboard.thread', thread);
  for (const [name, value] of before) kept.set(name, JSON.stringify(value));
  const state = store(BEGINNING);
  const asking = api({ threads: [{ thread_id: 't', title: 'T' }], ...script });
  const chat = new Chat({ state, api: asking, signIn: () => {} });
  await chat.start();
  return { chat, state, asked: asking.asked, shown: () => state.get().conversation.items.map((item) => item.text ?? item.kind) };
}

const unanswered = (at = Date.now()) => ['switchboard.unanswered', { t: { id: 'm1', text: 'Hi', asked: 1, at } }];
const isKept = () => JSON.parse(kept.get('switchboard.unanswered') ?? '{}').t?.id ?? null;

test('a message that is sent before the threads have come goes into the open thread', async () => {
  kept.clear();
  kept.set('switchboard.thread', 't');
  const asking = api({ runs: [[started, said('Hello'), finished]] });
  const threads = [];
  const run = asking.run;
  Object.assign(asking, { run: (input) => (threads.push(input.thread), run(input)) });
  let come;
  asking.threads = () => new Promise((done) => { come = () => done({ items: [], next_cursor: null }); });
  const state = store(BEGINNING);
  const chat = new Chat({ state, api: asking, signIn: () => {} });
  const starting = chat.start();
  const first = come;
  const sent = chat.send('Hi', 'm1');
  first();
  await starting;
  assert.equal(await sent, true);
  assert.deepEqual([threads, state.get().conversation.items.map(({ text }) => text)], [['t'], ['Hi', 'Hello']]);
});

test('a list of threads that could not be read is read again, and the conversation stays', async () => {
  kept.clear();
  const asking = api({ runs: [[started, said('Hello'), finished]] });
  const { threads } = asking;
  asking.threads = async () => {
    throw new Unreachable();
  };
  const state = store(BEGINNING);
  const chat = new Chat({ state, api: asking, signIn: () => {} });
  await chat.start();
  const { action } = state.get().notice;
  await chat.send('Hi', 'm1');
  asking.threads = threads;
  await action.act();
  assert.deepEqual([state.get().notice, state.get().conversation.items.map(({ text }) => text)], [null, ['Hi', 'Hello']]);
});

test('a message is kept until it is answered', async () => {
  const { chat, asked, shown } = await opened({ runs: [[started, said('Hello'), { type: 'CUSTOM', name: 'receipt', value: receipt }, finished]] });
  const sent = chat.send('Hi', 'm1');
  assert.equal(isKept(), 'm1');
  assert.equal(await sent, true);
  assert.deepEqual([asked.at(-1), shown(), isKept()], [['run', 'm1'], ['Hi', 'Hello', 'receipt'], null]);
});

test('after a reload the turn that is still being made is followed, and nothing is sent', async () => {
  const running = { type: 'CUSTOM', name: 'running', value: { message_id: 'm1', message: 'Hi', calls: [] } };
  const followed = [started, snapshot(question), running, said('Hello'), { type: 'CUSTOM', name: 'receipt', value: receipt }, finished];
  const { state, asked, shown } = await opened({ histories: [followed] }, { before: [unanswered()] });
  assert.deepEqual([asked, shown(), isKept()], [[['history', 't']], ['Hi', 'Hello', 'receipt'], null]);
  assert.deepEqual([state.get().answering, state.get().unanswered], [false, null]);
});

test('after a reload a message that never arrived goes out again under its name', async () => {
  const { asked, shown } = await opened({ runs: [[started, said('Hello'), finished]] }, { before: [unanswered()] });
  assert.deepEqual([asked, shown(), isKept()], [[['history', 't'], ['run', 'm1']], ['Hi', 'Hello'], null]);
});

test('after a reload an answered message is not sent again, and a failed or old one is asked for', async () => {
  const answer = { id: 'a', role: 'assistant', content: 'Hello' };
  const answered = await opened({ histories: [[started, snapshot(question, answer), finished]] }, { before: [unanswered()] });
  assert.deepEqual([answered.asked.length, isKept()], [1, null]);
  const failure = { ...answer, content: 'The model is away.', metadata: { failed: true, message_id: 'm1' } };
  const failed = await opened({ histories: [[started, snapshot(question, failure), finished]] }, { before: [unanswered()] });
  assert.deepEqual([failed.asked.length, failed.state.get().unanswered.id, isKept()], [1, 'm1', 'm1']);
  await failed.chat.sendAgain();
  assert.deepEqual([failed.asked.at(-1), failed.shown()], [['run', 'm1'], ['Hi']], 'in the place of its last try');
  const elsewhere = await opened({ histories: [[started, snapshot(question, failure), finished]] });
  assert.deepEqual(elsewhere.state.get().unanswered, { id: 'm1', text: 'Hi' }, 'another tab may do so, too');
  const old = await opened({}, { before: [unanswered(Date.now() - 86_400_000)] });
  assert.deepEqual([old.asked.length, old.state.get().unanswered.id, old.shown()], [1, 'm1', ['Hi']]);
});

test('a stream that breaks off is taken up where the thread is, and sent again only by the person', async () => {
  const cut = new BrokenOff('the stream broke off');
  const answer = { id: 'a', role: 'assistant', content: 'Hello' };
  const over = await opened({ threads: [], runs: [[started, said('Hel'), cut]], histories: [[started, snapshot(question, answer), finished]] });
  assert.equal(await over.chat.send('Hi', 'm1'), true);
  assert.deepEqual([over.shown(), over.state.get().notice, isKept()], [['Hi', 'Hello'], null, null]);
  const lost = await opened({ threads: [], runs: [[new Unreachable()]], histories: [[new Unreachable()]] });
  assert.equal(await lost.chat.send('Hi', 'm1'), true);
  const { unanswered: again, notice } = lost.state.get();
  assert.deepEqual([again.id, isKept()], ['m1', 'm1']);
  assert.match(notice.text, /^The service cannot be reached\..* Send the message again; what was done already is not done twice\.$/);
  await lost.chat.sendAgain();
  assert.deepEqual(lost.asked.filter(([what]) => what === 'run'), [['run', 'm1'], ['run', 'm1']]);
});

test('a run that fails says so in a sentence with the next step', async () => {
  const failure = { type: 'RUN_ERROR', message: 'the LLM failed (status 500)', code: 'upstream' };
  const { chat, state } = await opened({ runs: [[started, failure]] });
  await chat.send('Hi', 'm1');
  assert.equal(state.get().notice.text, 'The LLM failed (status 500). Send the message again; what was done already is not done twice.');
  assert.deepEqual([state.get().unanswered.id, isKept()], ['m1', 'm1']);
});

test('a message that is refused goes back to where it was written, and is not kept', async () => {
  const busy = new Refused(409, 'conflict', 'The thread is just being answered. Try again in a moment.');
  const { chat, shown } = await opened({ runs: [[busy]] });
  assert.equal(await chat.send('Hi', 'm1'), false);
  assert.deepEqual([shown(), isKept()], [[], null]);
});

test('a card that was decided elsewhere closes and says how', async () => {
  const interrupt = { id: 'i', message: 'May I call Send?', metadata: { tool: 'send', label: 'Send', shows: [], arguments: {} } };
  const asks = [started, snapshot(question), { ...finished, outcome: { type: 'interrupt', interrupts: [interrupt] } }];
  const decided = new Refused(409, 'consent_decided', 'You refused this in another window.', { decided: 'refused' });
  const after = [started, snapshot(question, { id: 'a', role: 'assistant', content: 'I did not.' }), finished];
  const { chat, state, asked, shown } = await opened({ histories: [asks, after], runs: [[decided]] });
  assert.equal(state.get().conversation.waiting.label, 'Send');
  await chat.decide(true);
  assert.deepEqual(asked.at(-2), ['run', { id: 'i', approved: true }]);
  assert.deepEqual([state.get().conversation.waiting, state.get().notice.text, shown()], [null, 'You refused this in another window.', ['Hi', 'I did not.']]);
  const looked = await opened({ histories: [asks, after] });
  await looked.chat.lookedAt();
  assert.equal(looked.state.get().conversation.waiting, null);
  assert.match(looked.state.get().notice.text, /decided in another window/);
});

test('who may only read is told why, and reads without the streaming API', async () => {
  const page = { items: [{ number: 2, role: 'assistant', content: 'Hello', tools: [{ tool: 'look_up', outcome: 'succeeded' }], widget: null, metadata: { receipt } }, { number: 1, role: 'user', content: 'Hi', tools: [], widget: null }], next_cursor: null };
  const { state, asked, shown } = await opened({ readOnly: 'This needs the role member.', messages: { newest: page } });
  assert.equal(state.get().readOnly, 'This needs the role member.');
  assert.deepEqual([asked, shown()], [[], ['Hi', 'call', 'Hello', 'receipt']]);
});

test('threads and messages beyond the first page are there', async () => {
  const threads = ['a', 'b', 'c', 'd', 't'].map((id) => ({ thread_id: id, title: id }));
  const note = { id: 'e', role: 'system', content: 'Earlier messages are not shown.', metadata: { next_cursor: '201' } };
  const older = { items: [{ number: 200, role: 'user', content: 'Older', tools: [], widget: null }], next_cursor: null };
  const { chat, state, shown } = await opened({ threads, histories: [[started, snapshot(note, question), finished]], messages: { 201: older } });
  assert.deepEqual([shown(), state.get().conversation.earlier], [['Hi'], '201'], 'a thread of a later page is opened again after a reload');
  await chat.loadEarlier();
  assert.deepEqual([shown(), state.get().conversation.earlier], [['Older', 'Hi'], null]);
  await chat.moreThreads();
  await chat.moreThreads();
  assert.deepEqual(state.get().threads.items.map((item) => item.thread_id), ['a', 'b', 'c', 'd', 't']);
  await chat.send('Hi', 'm2');
  await new Promise((done) => setTimeout(done, 5));
  assert.deepEqual([state.get().threads.items.length, state.get().threads.next], [5, null], 'an answer does not shorten the list');
});

test('a message whose next try is refused is kept under its name, and the page says why', async () => {
  const failure = { id: 'a', role: 'assistant', content: 'The model is away.', metadata: { failed: true, message_id: 'm1' } };
  for (const refusal of [new Refused(429, 'over_budget', 'Too much was asked.'), new Refused(503, 'unavailable', 'Try again in a moment.'), new SignInNeeded()]) {
    const { chat, state, asked, shown } = await opened({ histories: [[started, snapshot(question, failure), finished]], runs: [[refusal], [started, said('Hello'), finished]] }, { before: [unanswered()] });
    await chat.sendAgain();
    assert.deepEqual([state.get().unanswered.id, isKept(), shown(), state.get().notice.text], ['m1', 'm1', ['Hi'], refusal.message]);
    await chat.sendAgain();
    assert.deepEqual([asked.slice(-1), shown(), isKept()], [[['run', 'm1']], ['Hi', 'Hello'], null]);
  }
  const reloaded = await opened({ runs: [[new Refused(429, '', 'Too much was asked at once.')]] }, { before: [unanswered()] });
  assert.deepEqual([reloaded.state.get().unanswered.id, isKept(), reloaded.shown()], ['m1', 'm1', ['Hi']], 'one that goes out again by itself');
});

test('a message to which a gateway answers in place of the service keeps its name', async () => {
  const gateway = new Refused(504, '', 'Endpoint request timed out. Try again in a moment.');
  const { chat, state, asked } = await opened({ threads: [], runs: [[gateway]], histories: [[new Unreachable()]] });
  assert.equal(await chat.send('Hi', 'm1'), true);
  assert.deepEqual([state.get().unanswered.id, isKept()], ['m1', 'm1']);
  assert.match(state.get().notice.text, /timed out.* not done twice\.$/);
  await chat.sendAgain();
  assert.deepEqual(asked.filter(([what]) => what === 'run'), [['run', 'm1'], ['run', 'm1']]);
  const own = await opened({ runs: [[new Refused(503, 'unavailable', 'Down.')]] });
  assert.equal(await own.chat.send('Hi', 'm1'), false, 'the service has not taken it');
});

test('a chat that is left while it opens reads and sends nothing more', async () => {
  kept.clear();
  kept.set('switchboard.thread', 't');
  kept.set(...unanswered().map((part, place) => (place ? JSON.stringify(part) : part)));
  const asking = api({ threads: [{ thread_id: 't', title: 'T' }] });
  const { threads } = asking;
  let come;
  asking.threads = () => new Promise((done) => { come = done; });
  const chat = new Chat({ state: store(BEGINNING), api: asking, signIn: () => {} });
  const starting = chat.start();
  chat.leave();
  come(await threads());
  await starting;
  assert.deepEqual([asking.asked, isKept()], [[], 'm1']);
});

test('a decision that may not have arrived says why, while the conversation waits for it', async () => {
  const asks = (id) => [started, snapshot(question), { ...finished, outcome: { type: 'interrupt', interrupts: [{ id, message: 'May I call Send?', metadata: { tool: 'send', label: 'Send', shows: [], arguments: {} } }] } }];
  const gateway = new Refused(503, '', 'The service has a problem of its own. Try again in a moment.');
  for (const [failure, says] of [[gateway, gateway.message], [new Unreachable(), new Unreachable().message], [new BrokenOff(), 'The answer broke off.']]) {
    const { chat, state } = await opened({ histories: [asks('i'), asks('i')], runs: [[failure]] });
    await chat.decide(true);
    assert.deepEqual([state.get().conversation.waiting.id, state.get().notice], ['i', { text: says, kind: 'problem' }]);
  }
  for (const after of [asks('j'), [started, snapshot(question, { id: 'a', role: 'assistant', content: 'Sent.' }), finished]]) {
    const { chat, state } = await opened({ histories: [asks('i'), after], runs: [[gateway]] });
    await chat.decide(true);
    assert.equal(state.get().notice, null, 'it has arrived');
  }
});

test('a draft that was kept without its organization goes to the one that is open, once', () => {
  kept.clear();
  kept.set('switchboard.draft', 'Hi');
  const of = (organization) => new Chat({ state: store(BEGINNING), api: { ...api({}), organization }, signIn: () => {} }).draft;
  assert.deepEqual([of('acme'), of('other'), [...kept]], ['switchboard.draft.acme', 'switchboard.draft.other', [['switchboard.draft.acme', 'Hi']]]);
  kept.set('switchboard.draft', 'Older');
  of('acme');
  assert.deepEqual([...kept], [['switchboard.draft.acme', 'Hi']], 'a newer draft stays');
  kept.set('switchboard.draft', 'Hi');
  assert.deepEqual([of(null), kept.get('switchboard.draft')], ['switchboard.draft', 'Hi']);
});
