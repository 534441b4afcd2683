import assert from 'node:assert/strict';
import test from 'node:test';

import { actionsOf, beginningOf, conditionLines, diagnosticsAt, stepTo, templated } from '../assets/automations/words.js';
import { refusal } from '../assets/shell/problems.js';

test('what begins an automation is a sentence', () => {
  const said = (trigger_type, trigger_config) => beginningOf({ trigger_type, trigger_config });
  assert.equal(said('webhook', { service: 'Slack', event_type: 'message' }), 'When Slack says: message');
  assert.equal(said('polling', { service: 'Notion', source_tool: 'notion_query' }), 'When notion_query of Notion finds something new, asked every 15 minutes');
  assert.equal(said('schedule_recurring', { interval: 'weekly', day_of_week: 'Monday', time_of_day: '09:00', timezone: 'Europe/Madrid' }), 'Every week on Monday at 09:00 (Europe/Madrid)');
  assert.equal(said('schedule_recurring', { interval: '15min' }), 'Every 15min');
  assert.equal(said('manual', undefined), 'By hand');
});

test('a condition is lines, groups above their clauses', () => {
  const clause = { path: 'event.text', op: 'contains', value: 'urgent', case_insensitive: true };
  assert.deepEqual(conditionLines(clause), [{ depth: 0, text: 'event.text contains “urgent”, in any case of letters' }]);
  const group = { operator: 'OR', clauses: [clause, { operator: 'AND', clauses: [{ path: 'a', op: 'exists' }, { path: 'b', op: '>', value: 3 }] }] };
  assert.deepEqual(conditionLines(group).map(({ depth, text }) => [depth, text]), [
    [0, 'any of these'], [1, 'event.text contains “urgent”, in any case of letters'], [1, 'all of these'], [2, 'a is there'], [2, 'b is more than 3'],
  ]);
  assert.deepEqual(conditionLines({ operator: 'AND', clauses: [{ path: 'a', op: 'not_exists' }] }), [{ depth: 0, text: 'a is not there' }], 'one clause needs no group');
  assert.deepEqual(conditionLines({ field: 'event.text', contains: 'urgent' }), [{ depth: 0, text: 'event.text contains “urgent”' }]);
  const bug = { path: 'item.name', op: 'in', value: ['bug'] };
  assert.deepEqual(conditionLines({ path: 'labels', op: 'any', value: bug }), [{ depth: 0, text: 'labels has an item where' }, { depth: 1, text: 'item.name is one of ["bug"]' }]);
  assert.deepEqual(conditionLines({ path: 'text', op: 'is_empty' }), [{ depth: 0, text: 'text is empty' }]);
  assert.deepEqual([conditionLines(null), conditionLines({ a: 1, b: 2 })], [[], [{ depth: 0, text: '{"a":1,"b":2}' }]]);
});

test('templates in a text are told from the rest', () => {
  assert.deepEqual(templated('Alert: {{ event.text }}!'), [{ text: 'Alert: ' }, { name: 'event.text' }, { text: '!' }]);
  assert.deepEqual([templated(''), templated('{{open')], [[], [{ text: '{{open' }]]);
});

test('a mistake stands at the action that has it, and nowhere else', () => {
  const [, action] = actionsOf({ actions: [{ id: 'a', tool: 't' }, { action_id: 'b', tool: 'u', params: { x: 1 }, on_error: 'stop' }] });
  assert.deepEqual([action.id, action.parameters, action.stops, action.pointer], ['b', { x: 1 }, true, '/actions/1']);
  const diagnostics = ['/actions/1/parameters/x', '/actions/11', '/actions/1'].map((pointer) => ({ pointer }));
  assert.deepEqual(diagnosticsAt(diagnostics, '/actions/1').map(({ pointer }) => pointer), ['/actions/1/parameters/x', '/actions/1']);
});

test('what may be done with a version depends on the one that runs', () => {
  const automation = (active_version, status) => ({ active_version, status });
  assert.deepEqual(
    [stepTo(automation(4, 'active'), 4), stepTo(automation(4, 'paused'), 4), stepTo(automation(4, 'active'), 3), stepTo(automation(4, 'active'), 5), stepTo(automation(null, 'pending_review'), 1)],
    [null, 'resume', 'rollback', 'activate', 'activate'],
  );
});

test('a refused version brings its mistakes', async () => {
  const diagnostics = [{ severity: 'error', code: 'unknown_path', pointer: '/actions/0', message: 'x', hint: 'y' }];
  const refused = await refusal(new Response(JSON.stringify({ result: 'failed', diagnostics, truncated: false }), { status: 422 }));
  assert.deepEqual([refused.diagnostics, refused.message], [diagnostics, 'This version has mistakes, which are shown at their places.']);
});
