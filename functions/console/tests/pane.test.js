import assert from 'node:assert/strict';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';
import { View as Audit } from '../assets/audit/page.js';
import { View as Members } from '../assets/members/page.js';
import { RunView } from '../assets/runs/run_view.js';
import { ToolView } from '../assets/tools/tool_view.js';

const AT = '2026-11-27T10:00:00Z';
const action = (action_id, status) => ({ action_id, tool: 'current_time', status, attempts: 1, started_at: AT, duration_ms: 5, parameters: {}, result: null });
const RUN = { id: 'r', status: 'failed', trigger_type: 'manual', created_at: AT, finished_at: AT, duration_ms: 9, actions: [action('look', 'succeeded'), action('call', 'failed')], spent: { tokens: 0, cost: 0 }, limits: { tokens: 1, cost: 1 }, result: null };
const execution = (id) => ({ id, status: 'succeeded', trigger: 'test', started_at: AT, duration_ms: 5, arguments: {}, ignored_arguments: [], result: null });
const ENTRY = { entry_id: 'e', noun: 'tool', verb: 'created', action: 'tool.created', actor: 'ana', id: 't', at: AT };

/** Draws a view at one address after another; `of` draws for the query, and `reads` has the answers by path. */
function at(context, of, reads) {
  aPage();
  context.after(() => render(null, document.body));
  const api = { read: async (path) => reads[path] ?? { items: [], next_cursor: null } };
  const pane = () => document.body.all(({ attributes }) => attributes.class === 'pane')[0];
  const go = async (chosen) => {
    render(of(api, chosen), document.body);
    await settled();
    return pane();
  };
  return { go, pane };
}

const VIEWS = {
  'a step of a run': [(api, step) => html`<${RunView} id="r" query=${{ step }} api=${api} slug="acme" role="owner" nameOf=${() => 'Run'} />`, { 'runs/r': RUN }, 'look', 'call'],
  'an execution of a tool': [(api, chosen) => html`<${ToolView} id="t" query=${{ execution: chosen }} api=${api} slug="acme" role="owner" />`, { 'tools/t': { id: 't', name: 't', label: 'T', type: 'sms', version: 1, updated_at: AT, function_schema: null }, 'tools/t/executions': { items: [execution('a'), execution('b')], next_cursor: null } }, 'a', 'b'],
  'a member': [(api, id) => html`<${Members} api=${api} slug="acme" role="owner" at=${{ id: id ?? null, query: {} }} />`, { members: { items: ['ana', 'bo'].map((user_id) => ({ user_id, role: 'member', created_at: AT })), next_cursor: null } }, 'ana', 'bo'],
  'an entry of the audit log': [(api, entry) => html`<${Audit} api=${api} slug="acme" role="owner" at=${{ id: null, query: { entry } }} />`, { audit: { items: [ENTRY, { ...ENTRY, entry_id: 'f' }], next_cursor: null } }, 'e', 'f'],
};

for (const [what, [of, reads, one, other]] of Object.entries(VIEWS)) {
  test(`${what} that is chosen takes the focus, and comes into view if it is far below`, async (context) => {
    const { go, pane } = at(context, of, reads);
    await go(undefined);
    assert.notEqual(document.activeElement, pane(), 'nothing is chosen');
    pane().top = 2000;
    await go(one);
    assert.deepEqual([document.activeElement === pane(), pane().top], [true, 0]);
    document.body.focus();
    pane().top = 300;
    await go(other);
    assert.deepEqual([document.activeElement === pane(), pane().top], [true, 300]);
    document.body.focus();
    await go(other);
    assert.equal(document.activeElement, document.body, 'the same thing is drawn again');
  });
}
