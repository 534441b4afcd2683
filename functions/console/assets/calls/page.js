// Calls, newest first.

import { asNumber } from '../erasure/erasing.js';
import { html } from '../htm-preact.js';
import { Filters } from '../shell/filter_form.js';
import { asked, SINCE } from '../shell/filters.js';
import { List, Nothing } from '../shell/list.js';
import { useLive, useRows } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { length, Moment } from '../shell/moments.js';
import { dollars } from '../shell/money.js';
import { addressOf } from '../shell/route.js';
import { Status } from '../shell/status.js';
import { CallView } from './call_view.js';
import { callerOf } from './words.js';

const STATUSES = [['', 'Any status'], ['in-progress', 'In progress'], ['ringing', 'Ringing'], ['ended', 'Ended']];

export function View({ api, slug, at }) {
  const named = useLive(slug, async () => {
    const [agents, tools] = await Promise.all([api.read('agents', { limit: 200 }), api.read('tools', { limit: 200 })]);
    return { agents: new Map(agents.items.map(({ id, name }) => [id, name])), tools: new Map(tools.items.map(({ id, label }) => [id, label])) };
  }, (data) => (data ? null : 3_000));
  const names = named.data ?? { agents: new Map(), tools: new Map() };
  if (at.id) return html`<${CallView} key=${at.id} id=${at.id} query=${at.query} api=${api} slug=${slug} ...${names} />`;
  return html`<${Calls} api=${api} slug=${slug} agents=${names.agents} query=${at.query} />`;
}

function Calls({ api, slug, agents, query }) {
  const fields = [
    { name: 'status', word: 'Status', options: STATUSES },
    { name: 'failed', word: 'Tools', options: [['', 'Any outcome'], ['true', 'A tool failed']] },
    { name: 'agent_id', word: 'Agent', options: [['', 'Any agent'], ...agents] },
    { name: 'number', word: 'Number' },
    SINCE,
  ];
  const rows = useRows(`${slug} ${JSON.stringify(query)}`, (cursor) => api.read('calls', { limit: 50, cursor, ...asked({ ...query, number: query.number && (asNumber(query.number) ?? query.number) }, fields) }));
  const to = (changed) => addressOf({ slug, page: 'calls', query: changed });
  const filtered = fields.some(({ name }) => query[name]);
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
  const empty = html`<${Nothing} icon="call" title=${filtered ? 'No call matches' : 'No call yet'}>
    <p class="quiet">${filtered ? 'Change or clear the filters above.' : 'A call to a number of this organization appears here within seconds. Register a number and give it an agent first.'}</p><//>`;
  return html`<${Main} title="Calls">
    <div class="listside"><${Filters} fields=${fields} query=${query} to=${to} />
      <${List} what="Calls" name="calls" rows=${rows} columns=${columns} hrefOf=${({ id }) => addressOf({ slug, page: 'calls', id })} empty=${empty} /></div>
  <//>`;
}
