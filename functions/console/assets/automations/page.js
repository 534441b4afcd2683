// Automations, newest first, and one of them.

import { html, useState } from '../htm-preact.js';
import { Act } from '../shell/acting.js';
import { Choices, List, Nothing } from '../shell/list.js';
import { useRows } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { Moment } from '../shell/moments.js';
import { Place } from '../shell/page.js';
import { EDITOR } from '../shell/places.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Status } from '../shell/status.js';
import { AutomationView } from './automation_view.js';

const FILTERS = [['', 'All'], ['active', 'Active'], ['paused', 'Paused'], ['pending_review', 'Not active']];
const TRIGGERS = { webhook: 'An event', polling: 'An event, asked for', schedule_once: 'A schedule, once', schedule_recurring: 'A schedule', manual: 'By hand' };

export function View({ api, slug, role, at }) {
  const [saved, keep] = useState(null);
  const told = { api, slug, role, query: at.query };
  const onSaved = (answer, here) => {
    const { id, version } = answer.automation;
    keep(answer);
    if (here) location.hash = addressOf({ slug, page: 'automations', id, query: { version } });
  };
  if (at.id === 'new') return html`<${Place} key="new" place=${EDITOR} told=${{ ...told, onSaved }} />`;
  if (at.id) return html`<${AutomationView} key=${at.id} id=${at.id} saved=${saved?.automation.id === at.id ? saved : null} onSaved=${onSaved} ...${told} />`;
  return html`<${Automations} api=${api} slug=${slug} role=${role} status=${at.query.status ?? ''} />`;
}

function Automations({ api, slug, role, status }) {
  const rows = useRows(`${slug} ${status}`, (cursor) => api.read('automations', { limit: 50, cursor, status: status || null }));
  const columns = [
    { head: 'Name', cls: 'c-who wrap', cell: ({ name }) => html`<bdi>${name}</bdi>`, below: ({ trigger_type, pause_reason }) => html`<span class="sub">${TRIGGERS[trigger_type] ?? trigger_type}</span>${pause_reason && html`<span class="below quiet"><bdi>${pause_reason}</bdi></span>`}` },
    { head: 'Status', cls: 'c-st', cell: (item) => html`<${Status} of=${item.status} />` },
    { head: 'Begins by', cls: 'c-agent', cell: ({ trigger_type }) => TRIGGERS[trigger_type] ?? trigger_type },
    { head: 'Changed', cls: 'c-when', cell: ({ updated_at }) => html`<${Moment} at=${updated_at} />` },
    { head: 'Version', cls: 'num c-len', cell: ({ version, active_version }) => (active_version === null || active_version === version ? version : `${active_version} of ${version}`) },
  ];
  const refused = whyNot(role, 'member');
  const fresh = addressOf({ slug, page: 'automations', id: 'new' });
  const empty = html`<${Nothing} icon="flow" title=${status ? 'No automation has this status' : 'No automation yet'}>
    <p class="quiet">${status ? 'Choose another status above.' : 'Write one here, or describe it to an agent over MCP or in the chat. It is saved for review.'}</p>${!refused && html`<a class="btn" href=${fresh}>New automation</a>`}<//>`;
  const make = refused ? html`<${Act} id="new-automation" kind="main" refused=${refused}>New automation<//>` : html`<a class="btn main" id="new-automation" href=${fresh}>New automation</a>`;
  return html`<${Main} title="Automations" acts=${html`<${Choices} label="Status" of=${FILTERS} to=${(value) => addressOf({ slug, page: 'automations', query: { status: value } })} chosen=${status} />${make}`}>
    <div class="listside"><${List} what="Automations" name="calls" rows=${rows} columns=${columns} hrefOf=${({ id }) => addressOf({ slug, page: 'automations', id })} empty=${empty} /></div>
  <//>`;
}
