import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { compared, differences, filled } from '../assets/executions/compare.js';
import { actionOf, placeOf } from '../assets/audit/words.js';
import { erase } from '../assets/erasure/erasing.js';
import { faultOf } from '../assets/shell/fault.js';
import { asked, SINCE } from '../assets/shell/filters.js';
import { asNumber } from '../assets/shell/phone_number.js';
import { planOf } from '../assets/events/replays.js';
import { canRetry } from '../assets/runs/retry.js';
import { RIGHTS } from '../assets/members/rights.js';
import { chartOf } from '../assets/usage/budgets.js';

const states = (rows) => rows.map(({ path, state }) => `${path} ${state}`);

test('arguments are compared with the request that they would make now', () => {
  const given = { day: 'Monday', phone: '[number]', note: 'Nothing', extra: 'x', who: { name: 'Ana' } };
  const shown = { status: 'ready', ignored_arguments: ['extra'], request: { method: 'POST', url: 'https://crm.example/Ana', headers: { authorization: '[secret]' }, body: { day: 'Monday', phone: '[number]' } } };
  const rows = compared(given, shown, []);
  assert.deepEqual(states(rows.given), ['day used', 'phone hidden', 'note absent', 'extra newly-ignored', 'who.name used']);
  assert.deepEqual(states(rows.sent), ['method own', 'url given', 'headers.authorization own', 'body.day given', 'body.phone hidden']);
  assert.deepEqual(states(compared(given, shown, ['extra']).given)[3], 'extra ignored');
  const says = differences(rows, shown, { status: 'failed' });
  assert.equal(says.length, 3);
  assert.match(says.join(' '), /any more: extra\..*as they were given: note\..*Hidden in the record: phone\./);
});

test('a request that would not be sent marks no argument, and says that it was sent then', () => {
  const shown = { status: 'failed', ignored_arguments: [], answer: { error: 'No.' } };
  const rows = compared({ day: 'Monday' }, shown);
  assert.deepEqual([states(rows.given), rows.sent], [['day used'], []]);
  assert.deepEqual(differences(rows, shown, { status: 'succeeded' }), ['Then it was sent; now it would not be.']);
});

test('hidden values are filled in at their path, and the record stays as it is', () => {
  const given = { phone: '[number]', people: [{ mail: '[email]' }] };
  assert.deepEqual(filled(given, { phone: '+14155550101', 'people.0.mail': 'a@x.example', 'gone.0': 'y', empty: '' }), { phone: '+14155550101', people: [{ mail: 'a@x.example' }] });
  assert.equal(given.phone, '[number]');
});

test('a failure says whose it is, and the next step of the API comes first', () => {
  assert.equal(faultOf({ fault: null }), null);
  assert.equal(faultOf({ fault: 'service' }).word, 'The other service');
  assert.deepEqual(faultOf({ fault: 'moon', next_step: 'Wait.' }), { word: 'moon', next: 'Wait.' });
});

test('a span of time in the address is a moment for the API, the same for five minutes', () => {
  const now = Date.parse('2026-02-27T10:03:00Z');
  assert.deepEqual(asked({ since: '24h', other: 'x' }, [SINCE, { name: 'status' }], now), { since: '2026-02-26T10:00:00.000Z', status: null });
  assert.equal(asked({ since: '2026-02-01T00:00:00Z' }, [SINCE], now).since, '2026-02-01T00:00:00Z');
});

test('an erasure goes on until all was looked at, and sums its counts', async () => {
  const answers = [{ deleted: { calls: 2, runs: 1 }, runs_under_way: ['r'], complete: false, next_cursor: 'runs' }, { deleted: { calls: 0, runs: 3 }, runs_under_way: ['r'], complete: false, next_cursor: null }];
  const bodies = [];
  const found = await erase(async (body) => bodies.push(body) && answers[bodies.length - 1], '+14155550101');
  assert.deepEqual([found.deleted, found.runs_under_way, found.complete], [{ calls: 2, runs: 4 }, ['r'], false]);
  assert.deepEqual(bodies.map(({ cursor }) => cursor), [undefined, 'runs']);
  assert.deepEqual(['+1 (415) 555-0101', '4155550101', '+0123456789', ''].map(asNumber), ['+14155550101', null, null, null]);
  const notDialledFromAbroad = ['+44 (0)20 7946 0000', '+44(\u00a00 ) 20 7946 0000', '+44 ( 0)20 7946 0000'];
  assert.deepEqual(notDialledFromAbroad.map(asNumber), [null, null, null]);
  assert.deepEqual(['+39 (06) 1234567', '+49.(30)\u00a00000-001', '+1 (555-0) 100001'].map(asNumber), ['+39061234567', '+49300000001', '+15550100001']);
});

/** In the order of the rights that the page names. */
const ROUTES_OF_RIGHTS = [
  ['GET calls', 'GET runs', 'GET events', 'GET automations', 'GET tools', 'GET approvals'],
  ['GET /agent/threads'],
  ['POST /agent/chat'],
  ['POST runs', 'POST runs/{id}/cancel', 'POST automations/{id}/run', 'POST events/{id}/replay'],
  ['POST tools/test'],
  ['POST automations', 'PUT automations/{id}'],
  ['POST automations/{id}/activate', 'POST automations/{id}/pause', 'POST automations/{id}/rollback', 'DELETE automations/{id}'],
  ['POST approvals/{id}/approve', 'POST approvals/{id}/refuse'],
  ['POST tools', 'POST agents', 'POST phone-numbers', 'POST knowledge-bases'],
  ['POST do-not-call', 'DELETE do-not-call/{id}'],
  ['GET hooks', 'POST hooks'],
  ['POST services/{name}/connect', 'PUT keys/{service}'],
  ['GET members', 'POST members', 'PATCH members/{user_id}'],
  ['POST erasures'],
  [],
];

test('the rights that the page names are those of the routes', () => {
  const roles = readFileSync(new URL('../../../docs/roles.md', import.meta.url), 'utf8');
  assert.equal(RIGHTS.length, ROUTES_OF_RIGHTS.length);
  for (const [place, [least]] of RIGHTS.entries()) {
    for (const route of ROUTES_OF_RIGHTS[place]) {
      const [method, path] = route.split(' ');
      const whole = path.startsWith('/') ? path : `/api/{slug}/${path}`;
      assert.ok(roles.includes(`| \`${whole}\` | ${method} | ${least} |`), `${route}: ${least}`);
    }
  }
});

test('an entry of the audit log is said in words, and a deleted thing has no place', () => {
  assert.equal(actionOf({ noun: 'automation', action: 'rolled_back' }), 'Automation rolled back');
  assert.deepEqual([placeOf({ noun: 'tool', action: 'edited', of: 'x' }), placeOf({ noun: 'tool', action: 'deleted', of: 'x' }), placeOf({ noun: 'erasure', action: 'erased', of: null })], ['tools', null, null]);
});

test('a span of time in the address is a moment for the API, the same for five minutes', () => {
  const now = Date.parse('2026-02-27T10:03:00Z');
  assert.deepEqual(asked({ since: '24h', other: 'x' }, [SINCE, { name: 'status' }], now), { since: '2026-02-26T10:00:00.000Z', status: null });
  assert.equal(asked({ since: '2026-02-01T00:00:00Z' }, [SINCE], now).since, '2026-02-01T00:00:00Z');
});

test('the filters in the address are the body of a replay’s plan', () => {
  const now = Date.parse('2026-02-27T10:03:00Z');
  assert.deepEqual(planOf({}, now), {});
  assert.deepEqual(planOf({ since: '24h', service: 'github', automation_id: '', which: 'only_failed' }, now), { since: '2026-02-26T10:00:00.000Z', service: 'github', only_failed: true });
  assert.deepEqual(planOf({ automation_id: 'a', which: 'unmatched' }, now), { automation_id: 'a', unmatched: true });
});

test('days before the first count are left out of the chart, days without use are in it', () => {
  const { says, bars, shown } = chartOf([{ date: '2026-02-25', platform_cost: null }, { date: '2026-02-26', platform_cost: 0.5 }, { date: '2026-02-27', platform_cost: 0 }], 'platform_cost');
  assert.deepEqual([bars.map(({ value }) => value), shown(0.5)], [[0.5, 0], '$0.50']);
  assert.equal(says, 'Platform’s key: $0.50 in 2 days, most on 2026-02-26 with $0.50.');
  assert.equal(chartOf([{ date: '2026-02-25', runs: null }], 'runs'), null);
});

test('a failed run of an automation goes on once', () => {
  const failed = { status: 'time_limit', automation_id: 'a', started_at: '2026-02-27T10:03:00Z' };
  assert.deepEqual([failed, { ...failed, retried_by: 'x' }, { ...failed, status: 'completed' }, { ...failed, dry_run: true }, { ...failed, automation_id: null }, { ...failed, started_at: null }, { ...failed, status: 'running' }].map(canRetry), [true, false, false, false, false, false, false]);
});
