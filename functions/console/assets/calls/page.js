// Calls, newest first.

import { html } from '../htm-preact.js';
import { Filtered, useNames } from '../shell/filtered.js';
import { SINCE } from '../shell/filters.js';
import { length, Moment } from '../shell/moments.js';
import { dollars } from '../shell/money.js';
import { asNumber } from '../shell/phone_number.js';
import { Status } from '../shell/status.js';
import { CallView } from './call_view.js';
import { callerOf } from './words.js';

const STATUSES = [['', 'Any status'], ['in-progress', 'In progress'], ['ringing', 'Ringing'], ['ended', 'Ended']];

export function View({ api, slug, at }) {
  const agents = useNames(api, slug, 'agents');
  const tools = useNames(api, slug, 'tools', ({ label }) => label);
  if (at.id) return html`<${CallView} key=${at.id} id=${at.id} query=${at.query} api=${api} slug=${slug} agents=${agents} tools=${tools} />`;
  return html`<${Calls} api=${api} slug=${slug} agents=${agents} query=${at.query} />`;
}

function Calls({ api, slug, agents, query }) {
  const fields = [
    { name: 'status', word: 'Status', options: STATUSES },
    { name: 'failed', word: 'Tools', options: [['', 'Any outcome'], ['true', 'A tool failed']] },
    { name: 'agent_id', word: 'Agent', options: [['', 'Any agent'], ...agents] },
    { name: 'number', word: 'Number' },
    SINCE,
  ];
  const agentOf = ({ agent_id }) => agents.get(agent_id) ?? '–';
  const columns = [
    { head: 'Caller', cls: 'c-who', cell: (call) => html`<bdi>${callerOf(call)}</bdi>`, below: (call) => html`<span class="sub">${agentOf(call)} · <${Moment} at=${call.created_at} />${call.failed_tools > 0 && html` · <span class="wrong">${call.failed_tools} failed</span>`}</span>` },
    { head: 'Status', cls: 'c-st', cell: (call) => html`<${Status} of=${call.status} />` },
    { head: 'Tools', cls: 'c-fail', cell: ({ failed_tools: count }) => (count ? html`<${Status} of="failed">${count} failed<//>` : '') },
    { head: 'Agent', cls: 'c-agent', cell: agentOf },
    { head: 'Came in', cls: 'c-when', cell: (call) => html`<${Moment} at=${call.created_at} />` },
    { head: 'Lasted', cls: 'num c-len', cell: (call) => length(call.duration_seconds === null ? null : call.duration_seconds * 1000) },
    { head: 'Cost', cls: 'num c-cost', cell: (call) => dollars(call.cost) },
  ];
  const meant = { ...query, number: query.number && (asNumber(query.number) ?? query.number) };
  return html`<${Filtered} api=${api} slug=${slug} query=${query} meant=${meant} page="calls" title="Calls" icon="call" fields=${fields} columns=${columns}
    about="A call to a number of this organization appears here within seconds. Register a number and give it an agent first." />`;
}
