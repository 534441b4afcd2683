// Runs, newest first, and one of them.

import { html } from '../htm-preact.js';
import { Filters } from '../shell/filters.js';
import { List, Nothing } from '../shell/list.js';
import { useLive, useRows } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { length, Moment } from '../shell/moments.js';
import { dollars } from '../shell/money.js';
import { addressOf } from '../shell/route.js';
import { Status } from '../shell/status.js';
import { RunView } from './run_view.js';
import { triggerOf } from './words.js';

export function View({ api, slug, role, at }) {
  const named = useLive(slug, async () => new Map((await api.read('automations', { limit: 200 })).items.map(({ id, name }) => [id, name])), (data) => (data ? null : 3_000));
  const nameOf = ({ automation_id: id }) => (id ? (named.data?.get(id) ?? 'An automation') : 'A prompt');
  if (at.id) return html`<${RunView} key=${at.id} id=${at.id} query=${at.query} api=${api} slug=${slug} role=${role} nameOf=${nameOf} />`;
  return html`<${Runs} api=${api} slug=${slug} query=${at.query} names=${named.data ?? new Map()} nameOf=${nameOf} />`;
}

function Runs({ api, slug, query, names, nameOf }) {
  const fields = [{ name: 'automation_id', word: 'Automation', options: [['', 'Any automation'], ...names] }];
  const filtered = query.automation_id ?? null;
  const path = filtered ? `automations/${encodeURIComponent(filtered)}/runs` : 'runs';
  const rows = useRows(`${slug} ${path}`, (cursor) => api.read(path, { limit: 50, cursor }));
  const to = (changed) => addressOf({ slug, page: 'runs', query: changed });
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
