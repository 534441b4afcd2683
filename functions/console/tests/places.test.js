import assert from 'node:assert/strict';
import test from 'node:test';

import { mostUrgent, recipientsIn, titleOf } from '../assets/approvals/asked.js';
import { callsByHour, needsOf } from '../assets/home/needs.js';
import { reasonOf } from '../assets/events/words.js';
import { stepsOf, waitOf } from '../assets/runs/words.js';
import { keys } from '../assets/shell/shortcuts.js';
import { may, whyNot } from '../assets/shell/roles.js';
import { addressOf, route } from '../assets/shell/route.js';
import { NO_ROWS, revealed, shownOf, withNew, withNewest, withOlder } from '../assets/shell/rows.js';
import { budgetsOf } from '../assets/usage/budgets.js';

test('an address names organization, page, row and filters, and is read as it was written', () => {
  const address = addressOf({ slug: 'acme', page: 'calls', id: 'a/b?c', query: { execution: 'x y', status: '', none: null } });
  assert.equal(address, '#/acme/calls/a%2Fb%3Fc?execution=x+y');
  assert.deepEqual(route(address), { slug: 'acme', page: 'calls', id: 'a/b?c', query: { execution: 'x y' } });
  assert.deepEqual(['', '#main', '#/', '#/acme'].map(route), [null, null, null, null]);
  assert.equal(route('#/acme/calls/%E0%A4%A').id, '%E0%A4%A', 'an address that is no text is no error');
});

test('new rows wait until they are asked for, known ones change in their place', () => {
  const page = (...items) => ({ items: items.map(([id, status]) => ({ id, status })), next_cursor: 'older' });
  let rows = withNewest(NO_ROWS, page(['b', 'running'], ['a', 'ended']), 3);
  rows = withNewest(rows, page(['c', 'queued'], ['b', 'ended'], ['a', 'ended']), 3);
  assert.deepEqual([rows.items.map(({ id, status }) => `${id} ${status}`), rows.fresh.length], [['b ended', 'a ended'], 1]);
  rows = withOlder(revealed(rows), { items: [{ id: 'a' }, { id: 'z' }], next_cursor: null });
  assert.deepEqual([shownOf(rows).map(({ id }) => id), rows.fresh, rows.next], [['c', 'b', 'a', 'z'], [], null]);
});

/** The ids that are shown, those that wait, and the cursor, after pages of two rows. */
function after(...pages) {
  const read = (rows, [ids, next]) => withNewest(rows, { items: [...ids].map((id) => ({ id })), next_cursor: next }, 2);
  const rows = pages.reduce((before, page) => (typeof page === 'function' ? page(before) : read(before, page)), NO_ROWS);
  const ids = (items) => items.map(({ id }) => id).join('');
  return [ids(shownOf(rows)), ids(rows.fresh), rows.next];
}
const older = (ids, next) => (rows) => withOlder(rows, { items: [...ids].map((id) => ({ id })), next_cursor: next });

test('a row that the page lacks within its range is gone, one that newer rows push off stays', () => {
  assert.deepEqual(after(['ba', null], ['a', null]), ['a', '', null], 'removed');
  assert.deepEqual(after(['cb', 'b'], ['dc', 'c']), ['cb', 'd', 'b'], 'pushed off by d');
  assert.deepEqual(after(['dc', 'c'], ['db', 'b']), ['db', '', 'b'], 'the next row takes the place of a removed one');
  assert.deepEqual(after(['ba', 'a'], ['b', 'x']), ['b', '', 'x'], 'it left the filter, whose page is short');
  assert.deepEqual(after(['ba', null], revealed, ['c', null]), ['c', '', null]);
  assert.deepEqual(after(['a', null], ['ba', null], ['a', null]), ['a', '', null], 'it was gone before it was shown');
});

test('a page without a known row begins the list anew', () => {
  assert.deepEqual(after(['ba', 'a'], older('0', null), ['fe', 'e']), ['fe', '', 'e']);
});

test('older rows and their cursor stay, and a row that moves into the page is shown once', () => {
  assert.deepEqual(after(['dc', 'c'], older('ba', 'a'), ['ed', 'd']), ['dcba', 'e', 'a']);
  assert.deepEqual(after(['dc', 'c'], older('ba', 'a'), ['db', 'b']), ['dba', '', 'a'], 'c is gone');
  assert.deepEqual(after(['', 'x'], older('', 'y'), ['', 'x']), ['', '', 'y'], 'pages of a filter are empty');
  assert.deepEqual(after(['', 'x'], older('a', 'y'), ['', 'x']), ['a', '', 'y']);
});

test('an added row is shown at once, wherever its place is', () => {
  assert.deepEqual(after(['ac', null], (rows) => withNew(rows, { id: 'b' }), ['abc', null]), ['abc', '', null]);
});

test('keys mean something while no field has the focus', () => {
  const read = keys(() => 0);
  const pressed = (key, more = {}) => read({ key, target: { tagName: 'A' }, ...more });
  assert.deepEqual([pressed('j'), pressed('k'), pressed('Escape'), pressed('?')], ['next', 'previous', 'close', 'help']);
  assert.deepEqual([pressed('g'), pressed('c'), pressed('c')], [null, 'go:c', null]);
  assert.deepEqual([pressed('j', { target: { tagName: 'TEXTAREA' } }), pressed('j', { ctrlKey: true })], [null, null]);
});

test('a role says what it lacks', () => {
  assert.deepEqual([may('admin', 'member'), may('viewer', 'member'), may(null, 'viewer')], [true, false, false]);
  assert.deepEqual([whyNot('owner', 'admin'), whyNot('viewer', 'admin')], [null, 'This needs the role admin; you are a viewer. Ask an owner for it.']);
});

const approval = (id, minutes, more = {}) => ({ id, status: 'pending', tool: 'gmail_send_email', recipients: ['ana@x.example'], reason: null, expires_at: new Date(Date.now() + minutes * 60_000).toISOString(), ...more });

test('an approval says what and to whom, and the one that ends soonest comes first', () => {
  const items = [approval('late', 90), approval('soon', 5), approval('done', 1, { status: 'approved' })];
  assert.deepEqual([mostUrgent(items).id, mostUrgent(items, 'soon').id, mostUrgent([])], ['soon', 'late', null]);
  assert.equal(titleOf(items[0]), 'Gmail send email to ana@x.example');
  assert.equal(recipientsIn({ recipients: ['a', 'b', 'c'] }), 'a and 2 more');
});

test('an event that woke a run began something', () => {
  const event = { matched: [], woke: [], unmatched: [], waiting: [], why: 'No automation listens to it.' };
  assert.deepEqual([reasonOf(event), reasonOf({ ...event, woke: [{ run_id: 'r' }] })], ['No automation listens to it.', null]);
});

test('what needs a person is in one list, and one failure of many calls is one row', () => {
  const now = new Date().toISOString();
  const failure = (call, execution) => ({ call: { id: call, caller_phone_number: '+1' }, execution: { id: execution, tool_id: 't', call_id: call, status: 'failed', error: 'A landline.', started_at: now }, tool: 'Send' });
  const needs = needsOf({
    approvals: [approval('a', 5)],
    paused: [{ id: 'p', name: 'Report', pause_reason: null, paused_by_run: 'r9', updated_at: now }],
    runs: [{ id: 'r', status: 'failed', error: 'Gone.', created_at: now }, { id: 'old', status: 'failed', created_at: '2020-01-01T00:00:00Z' }, { id: 'late', status: 'time_limit', error: null, actions_failed: 0, created_at: now }],
    calls: [
      { id: 'c3', caller_phone_number: '+2', created_at: now, ended_at: now, claim_check: { unproven: [{ tool: 'book' }, { tool: null }] } },
      { id: 'c4', created_at: now, claim_check: { unproven: [] } },
      { id: 'c5', created_at: now, claim_check: null },
      { id: 'c6', created_at: '2020-01-01T00:00:00Z', claim_check: { unproven: [{ tool: null }] } },
    ],
    failures: [failure('c1', 'e1'), failure('c2', 'e2'), { ...failure('c1', 'e3'), execution: { ...failure('c1', 'e3').execution, status: 'unknown' } }],
    usage: { runs_per_hour: { used: 90, limit: 100, until: now }, executions_per_hour: { used: 1, limit: 100, until: now } },
    nameOf: (id) => id ?? 'A prompt',
  });
  assert.deepEqual(needs.map(({ word, to }) => [word, to]), [['Approval', 'a'], ['Unproven', 'c3'], ['Tool failed', 'c1'], [null, 'c1'], ['Run', 'r'], ['Run', 'late'], ['Paused', 'r9'], ['Near limit', null]]);
  assert.deepEqual([needs[1].title, needs[1].why], ['In the call of +2', 'The agent confirmed 2 effects that no tool had (book).']);
  assert.equal(needs[2].title, 'Send, in 2 calls');
});

test('runs need a person once per automation and reason, and those that another run went on from not at all', () => {
  const now = new Date().toISOString();
  const run = (id, more) => ({ id, automation_id: 'x', status: 'run_limit', error: null, actions_failed: 0, created_at: now, retried_by: null, ...more });
  const runs = [run('1'), run('2'), run('3'), run('4', { status: 'failed', error: 'Gone.' }), run('5', { status: 'failed', error: 'Gone.', retried_by: '9' }), run('6', { automation_id: 'y' })];
  const paused = [{ id: 'p', name: 'Old', pause_reason: null, paused_by_run: null, updated_at: now }];
  const needs = needsOf({ approvals: [], paused, runs, calls: [], failures: [], usage: {}, nameOf: (id) => id });
  assert.deepEqual(needs.map(({ title, page, to }) => [title, page, to]), [['x, in 3 runs', 'runs', '1'], ['x', 'runs', '4'], ['y', 'runs', '6'], ['Old', 'automations', 'p']]);
});

test('calls are counted by hour, and it is said where older ones are not known', () => {
  const now = Date.parse('2026-02-27T10:30:00Z');
  const calls = [{ created_at: '2026-02-27T10:10:00Z' }, { created_at: '2026-02-27T09:59:00Z', failed_tools: 2 }, { created_at: null }];
  const { hours, since } = callsByHour(calls, { whole: false, now });
  assert.deepEqual([hours.length, hours.at(-1).count, hours.at(-2).count, hours.at(-2).failed, since], [24, 1, 1, 1, Date.parse('2026-02-27T09:59:00Z')]);
  assert.equal(callsByHour(calls, { whole: true, now }).since, null);
});

test('a budget without a limit left is whole, and one of a newer version has its name', () => {
  const budgets = budgetsOf({ runs_per_hour: { used: 5, limit: 0, until: 'x' }, chats_per_day: { used: 1, limit: 4, until: 'x' } });
  assert.deepEqual(budgets.map(({ word, share }) => [word, share]), [['Runs started by the API, this hour', 1], ['chats per day', 0.25]]);
  const [cost] = budgetsOf({ own_cost_per_month: { used: 12.5, limit: 1000, until: 'x' } });
  assert.deepEqual([cost.used, cost.limit], ['$12.50', '$1,000.00']);
});

test('a run is its steps in order of time, calls below the answer that made them', () => {
  const started_at = '2026-02-27T10:00:00.000Z';
  const call = (name, outcome) => ({ name, outcome, arguments: {}, result: 'No.', duration_ms: 100 });
  const steps = [{ step: 1, phase: 'tools', answer: 'x', model: 'm', cut: false, started_at: '2026-02-27T10:00:01.000Z', duration_ms: 2_000, calls: [call('wget', 'succeeded'), call('', 'invalid')] }];
  const found = stepsOf({ started_at, steps, actions: [] });
  assert.deepEqual(found.map(({ id, level, from, took }) => [id, level, from, took]), [['step-1', 0, 1_000, 2_000], ['step-1-1', 1, 3_000, 100], ['step-1-2', 1, 3_100, 100]]);
  assert.deepEqual(found.map(({ error }) => error), [null, null, 'No.']);
  const action = { action_id: 'alert', tool: 'post', status: 'skipped', attempts: 0, duration_ms: 0, started_at, arguments: null, output: null, error: null, condition_result: null };
  assert.deepEqual(stepsOf({ started_at, steps: [], actions: [action] }).map(({ id, took }) => [id, took]), [['alert', null]]);
  assert.deepEqual(['approval', 'event'].map((what) => waitOf({ waits_for: { what, event: 'stripe invoice.paid' } })), ['Waits for a decision', 'Waits for the event stripe invoice.paid']);
});
