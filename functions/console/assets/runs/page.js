// Runs, newest first.

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
import { RunView } from './run_view.js';
import { triggerOf } from './words.js';

const STATUSES = [['', 'Any status'], ['running', 'Running'], ['waiting_for_approval', 'Waits for approval'], ['completed', 'Completed'], ['partial_failure', 'Partly failed'], ['failed', 'Failed'], ['cancelled', 'Cancelled']];

export function View({ api, slug, role, at }) {
  const named = useLive(slug, async () => new Map((await api.read('automations', { limit: 200 })).items.map(({ id, name }) => [id, name])), (data) => (data ? null : 3_000));
  const nameOf = ({ automation_id: id }) => (id ? (named.data?.get(id) ?? 'An automation') : 'A prompt');
  if (at.id) return html`<${RunView} key=${at.id} id=${at.id} query=${at.query} api=${api} slug=${slug} role=${role} nameOf=${nameOf} />`;
  return html`<${Runs} api=${api} slug=${slug} query=${at.query} names=${named.data ?? new Map()} nameOf=${nameOf} />`;
}

function Runs({ api, slug, query, names, nameOf }) {
  const fields = [
    { name: 'status', word: 'Status', options: STATUSES },
    { name: 'failed', word: 'Outcome', options: [['', 'Any outcome'], ['true', 'Failed']] },
    { name: 'automation_id', word: 'Automation', options: [['', 'Any automation'], ...names] },
    { name: 'dry_run', word: 'Kind', options: [['', 'Any kind'], ['false', 'For real'], ['true', 'Dry run']] },
    SINCE,
  ];
  const rows = useRows(`${slug} ${JSON.stringify(query)}`, (cursor) => api.read('runs', { limit: 50, cursor, ...asked(query, fields) }));
  const to = (changed) => addressOf({ slug, page: 'runs', query: changed });
  const filtered = fields.some(({ name }) => query[name]);
  const columns = [
    { head: 'What', cls: 'c-who wrap', cell: (run) => html`<bdi>${nameOf(run)}</bdi>`, below: (run) => html`${run.dry_run && html` <span class="remark">dry run</span>`}<span class="sub"><${Moment} at=${run.created_at} /> · ${triggerOf(run)}</span>` },
    { head: 'Status', cls: 'c-st', cell: (run) => html`<${Status} of=${run.status} />` },
    { head: 'Began by', cls: 'c-agent', cell: triggerOf },
    { head: 'Began', cls: 'c-when', cell: (run) => html`<${Moment} at=${run.created_at} />` },
    { head: 'Took', cls: 'num c-len', cell: (run) => length(run.duration_ms) },
    { head: 'Cost', cls: 'num c-cost', cell: (run) => dollars(run.spent.cost) },
  ];
  const empty = html`<${Nothing} icon="runs" title=${filtered ? 'No run matches' : 'No run yet'}>
    <p class="quiet">${filtered ? 'Change or clear the filters above.' : 'A run appears here when an automation begins: by an event, by its schedule, or by hand.'}</p><//>`;
  return html`<${Main} title="Runs">
    <div class="listside"><${Filters} fields=${fields} query=${query} to=${to} />
      <${List} what="Runs" name="calls" rows=${rows} columns=${columns} hrefOf=${({ id }) => addressOf({ slug, page: 'runs', id })} empty=${empty} /></div>
  <//>`;
}
