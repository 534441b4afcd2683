// Runs, newest first, and one of them.

import { html } from '../htm-preact.js';
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
  return html`<${Runs} api=${api} slug=${slug} automation=${at.query.automation ?? null} nameOf=${nameOf} />`;
}

function Runs({ api, slug, automation, nameOf }) {
  const path = automation ? `automations/${encodeURIComponent(automation)}/runs` : 'runs';
  const rows = useRows(`${slug} ${path}`, (cursor) => api.read(path, { limit: 50, cursor }));
  const columns = [
    { head: 'What', cls: 'c-who wrap', cell: (run) => html`<bdi>${nameOf(run)}</bdi>`, below: (run) => html`${run.dry_run && html` <span class="remark">dry run</span>`}<span class="sub"><${Moment} at=${run.created_at} /> · ${triggerOf(run)}</span>` },
    { head: 'Status', cls: 'c-st', cell: (run) => html`<${Status} of=${run.status} />` },
    { head: 'Began by', cls: 'c-agent', cell: triggerOf },
    { head: 'Began', cls: 'c-when', cell: (run) => html`<${Moment} at=${run.created_at} />` },
    { head: 'Took', cls: 'num c-len', cell: (run) => length(run.duration_ms) },
    { head: 'Cost', cls: 'num c-cost', cell: (run) => dollars(run.spent.cost) },
  ];
  const empty = html`<${Nothing} icon="runs" title="No run yet"><p class="quiet">A run appears here when an automation begins: by an event, by its schedule, or by hand.</p><//>`;
  const all = addressOf({ slug, page: 'runs' });
  const filter = automation && html`<div class="filters"><a class="chip on" href=${all} aria-label=${`Only ${nameOf({ automation_id: automation })}: show all runs`}>Only <b><bdi>${nameOf({ automation_id: automation })}</bdi></b> ×</a></div>`;
  return html`<${Main} title="Runs">
    <div class="listside">${filter}<${List} what="Runs" name="calls" rows=${rows} columns=${columns} hrefOf=${({ id }) => addressOf({ slug, page: 'runs', id })} empty=${empty} /></div>
  <//>`;
}
