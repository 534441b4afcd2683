// Runs, newest first.

import { html } from '../htm-preact.js';
import { Filtered, useNames } from '../shell/filtered.js';
import { SINCE } from '../shell/filters.js';
import { length, Moment } from '../shell/moments.js';
import { dollars } from '../shell/money.js';
import { Status } from '../shell/status.js';
import { RunView } from './run_view.js';
import { triggerOf } from './words.js';

const STATUSES = [['', 'Any status'], ['running', 'Running'], ['waiting_for_approval', 'Waits for approval'], ['completed', 'Completed'], ['partial_failure', 'Partly failed'], ['failed', 'Failed'], ['cancelled', 'Cancelled']];

export function View({ api, slug, role, at }) {
  const names = useNames(api, slug, 'automations');
  const nameOf = ({ automation_id: id }) => (id ? (names.get(id) ?? 'An automation') : 'A prompt');
  if (at.id) return html`<${RunView} key=${at.id} id=${at.id} query=${at.query} api=${api} slug=${slug} role=${role} nameOf=${nameOf} />`;
  return html`<${Runs} api=${api} slug=${slug} query=${at.query} names=${names} nameOf=${nameOf} />`;
}

function Runs({ api, slug, query, names, nameOf }) {
  const fields = [
    { name: 'status', word: 'Status', options: STATUSES },
    { name: 'failed', word: 'Outcome', options: [['', 'Any outcome'], ['true', 'Failed']] },
    { name: 'automation_id', word: 'Automation', options: [['', 'Any automation'], ...names] },
    { name: 'dry_run', word: 'Kind', options: [['', 'Any kind'], ['false', 'For real'], ['true', 'Dry run']] },
    SINCE,
  ];
  const columns = [
    { head: 'What', cls: 'c-who wrap', cell: (run) => html`<bdi>${nameOf(run)}</bdi>`, below: (run) => html`${run.dry_run && html` <span class="remark">dry run</span>`}<span class="sub"><${Moment} at=${run.created_at} /> · ${triggerOf(run)}</span>` },
    { head: 'Status', cls: 'c-st', cell: (run) => html`<${Status} of=${run.status} />` },
    { head: 'Began by', cls: 'c-agent', cell: triggerOf },
    { head: 'Began', cls: 'c-when', cell: (run) => html`<${Moment} at=${run.created_at} />` },
    { head: 'Took', cls: 'num c-len', cell: (run) => length(run.duration_ms) },
    { head: 'Cost', cls: 'num c-cost', cell: (run) => dollars(run.spent.cost) },
  ];
  return html`<${Filtered} api=${api} slug=${slug} query=${query} page="runs" title="Runs" icon="runs" fields=${fields} columns=${columns}
    about="A run appears here when an automation begins: by an event, by its schedule, or by hand." />`;
}
