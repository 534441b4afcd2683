// Executions of all tools, newest first.

import { html } from '../htm-preact.js';
import { faultOf, FAULTS } from '../shell/fault.js';
import { Filtered, useNames } from '../shell/filtered.js';
import { SINCE } from '../shell/filters.js';
import { length, Moment } from '../shell/moments.js';
import { triggerOf, whereOf } from '../shell/request.js';
import { addressOf } from '../shell/route.js';
import { Status } from '../shell/status.js';
import { ExecutionView } from './execution_view.js';

const STATUSES = [['', 'Any status'], ['failed', 'Failed'], ['unknown', 'Unknown'], ['partial', 'Partly done'], ['limited', 'Limited'], ['succeeded', 'Succeeded'], ['queued', 'Queued'], ['replayed', 'Replayed']];

export function View({ api, slug, role, at }) {
  const labels = useNames(api, slug, 'tools', ({ label }) => label);
  if (at.id) return html`<${ExecutionView} key=${at.id} id=${at.id} query=${at.query} api=${api} slug=${slug} role=${role} labels=${labels} />`;
  return html`<${Executions} api=${api} slug=${slug} labels=${labels} query=${at.query} />`;
}

function Executions({ api, slug, labels, query }) {
  const fields = [
    { name: 'status', word: 'Status', options: STATUSES },
    { name: 'fault', word: 'Cause', options: [['', 'Any cause'], ...FAULTS] },
    { name: 'tool_id', word: 'Tool', options: [['', 'Any tool'], ...labels] },
    SINCE,
  ];
  const labelOf = ({ label, tool_id }) => label ?? labels.get(tool_id) ?? 'A tool';
  const columns = [
    { head: 'Tool', cls: 'c-who wrap', cell: (item) => html`<bdi>${labelOf(item)}</bdi>`, below: (item) => html`<span class="sub"><${Moment} at=${item.started_at} /> · ${triggerOf(item.trigger)}</span>${item.error && html`<span class="below quiet"><bdi>${item.error}</bdi></span>`}` },
    { head: 'Status', cls: 'c-st', cell: (item) => html`<${Status} of=${item.status} />` },
    { head: 'Cause', cls: 'c-agent', cell: (item) => faultOf(item)?.word ?? '' },
    { head: 'Called by', cls: 'c-fail', cell: (item) => triggerOf(item.trigger) },
    { head: 'Began', cls: 'c-when', cell: (item) => html`<${Moment} at=${item.started_at} />` },
    { head: 'Took', cls: 'num c-len', cell: (item) => length(item.duration_ms) },
  ];
  return html`<${Filtered} api=${api} slug=${slug} query=${query} page="executions" title="Executions" icon="bolt" fields=${fields} columns=${columns}
    about="Each time an agent, an automation or a test runs a tool, it appears here with its arguments and its result."
    hrefOf=${({ id, ...item }) => addressOf({ slug, page: 'executions', id, query: { ...query, ...whereOf(item) } })} />`;
}
