import assert from 'node:assert/strict';
import test from 'node:test';

import { callerOf } from '../assets/calls/words.js';
import { busyIn, failedIn, lanesOf, readAgain } from '../assets/calls/timeline.js';
import { dollars } from '../assets/shell/money.js';

const FROM = Date.parse('2026-02-27T10:10:58.000Z');
const at = (milliseconds) => new Date(FROM + milliseconds).toISOString();
const tool = (event, time, more = {}) => ({ at: at(time), event, execution_id: 'e1', tool_id: 't1', label: null, trigger: 'conversation', ...more });
const finished = (time, status, more = {}) => tool('tool_finished', time, { status, duration_ms: 500, error: status === 'failed' ? 'A landline.' : null, ...more });
const call = (timeline, more = {}) => ({ created_at: at(0), ended_at: at(60_000), status: 'ended', timeline, ...more });

test('a tool is one bar, from its queue over its start to its end', () => {
  const lanes = lanesOf(call([tool('tool_queued', 100), tool('tool_started', 300), finished(800, 'succeeded')]));
  assert.deepEqual(lanes.tools, [
    { tool_id: 't1', label: null, bars: [{ id: 'e1', tool_id: 't1', label: null, trigger: 'conversation', queued: 100, from: 300, to: 800, status: 'succeeded', error: null }] },
  ]);
  assert.deepEqual([lanes.span, lanes.ended], [60_000, true]);
});

test('a bar whose start was lost begins where its length says, and one without an end has none', () => {
  const lost = lanesOf(call([finished(800, 'failed')]));
  assert.deepEqual(lost.tools[0].bars.map(({ from, to }) => [from, to]), [[300, 800]]);
  const open = lanesOf(call([tool('tool_started', 300)]));
  assert.deepEqual([open.tools[0].bars[0].to, failedIn(open)], [null, []]);
});

test('failures are in order of time, over all tools', () => {
  const other = { execution_id: 'e2', tool_id: 't2' };
  const lanes = lanesOf(call([finished(9_000, 'failed'), finished(2_000, 'unknown', other), finished(3_000, 'succeeded', { execution_id: 'e3' })]));
  assert.deepEqual(failedIn(lanes).map(({ id }) => id), ['e2', 'e1']);
});

test('a failure that comes later is the last one, although its tool began first', () => {
  const slow = { execution_id: 'e2', tool_id: 't2' };
  const begun = [tool('tool_started', 100, slow), tool('tool_started', 300), finished(800, 'failed')];
  assert.deepEqual(failedIn(lanesOf(call(begun))).map(({ id }) => id), ['e1']);
  assert.deepEqual(failedIn(lanesOf(call([...begun, finished(5_000, 'failed', slow)]))).map(({ id }) => id), ['e1', 'e2']);
});

test('a call that goes on ends now, and the report of its cost does not make it longer', () => {
  const going = call([{ at: at(2_000), event: 'call_connected' }], { ended_at: null, status: 'in-progress' });
  assert.deepEqual([lanesOf(going, FROM + 9_000).span, lanesOf(going, FROM + 9_000).connected], [9_000, 2_000]);
  assert.equal(lanesOf(call([{ at: at(70_000), event: 'cost_reported', cost: 1, parts: {} }])).span, 60_000);
  assert.equal(lanesOf({ created_at: null, ended_at: null, status: null, timeline: [] }, FROM).span, 1, 'nothing is known of it');
});

test('a call is read again until its cost, results and check have come', () => {
  const again = (more, timeline = []) => readAgain(call(timeline, { cost: 0.1, claim_check: null, ...more }), FROM + 90_000);
  assert.deepEqual([again({ ended_at: null, status: 'in-progress' }), again({}), again({ cost: null })], [1_500, null, 5_000]);
  assert.deepEqual([again({ claim_check: { status: 'checking' } }), again({}, [tool('tool_started', 300)])], [5_000, 5_000]);
  assert.equal(readAgain(call([], { cost: null }), FROM + 3_600_000), null, 'some minutes');
});

test('the end of a call that came in elsewhere is unknown after its last moment', () => {
  const elsewhere = call([finished(2_000, 'succeeded'), finished(9_000, 'succeeded')], { created_at: null, ended_at: null, status: null });
  const later = FROM + 3_600_000;
  assert.deepEqual([lanesOf(elsewhere, later).span, lanesOf(elsewhere, later).lost, readAgain(elsewhere, later)], [7_000, true, null]);
  assert.deepEqual([lanesOf(elsewhere, FROM + 10_000).lost, readAgain(elsewhere, FROM + 10_000)], [false, 1_500]);
});

test('something goes on where anybody speaks, a tool runs or the model is told', () => {
  const lanes = lanesOf(call([{ at: at(5_000), event: 'agent_spoke' }, tool('tool_started', 300), finished(800, 'succeeded'), { at: at(900), event: 'context_injected' }]));
  assert.deepEqual(busyIn(lanes), [[0, 0], [60_000, 60_000], [0, 0], [5_000, 5_000], [900, 900], [300, 800]]);
});

test('facts of a call are words', () => {
  assert.deepEqual(['+14155550101', 'anonymous', null].map((caller_phone_number) => callerOf({ caller_phone_number })), ['+14155550101', 'Number withheld', 'Unknown caller']);
  assert.equal(callerOf({ direction: 'outbound', caller_phone_number: '+15005550006', called_phone_number: '+14155550102' }), '+14155550102');
  assert.deepEqual([null, 0, 0.118, 0.0021, 12.4, 1000].map(dollars), ['–', '$0.00', '$0.118', '$0.0021', '$12.40', '$1,000.00']);
});
