// Events, newest first, with their runs or the reason for none; and replays of many.

import { html } from '../htm-preact.js';
import { Filters } from '../shell/filter_form.js';
import { asked, SINCE } from '../shell/filters.js';
import { List, Nothing } from '../shell/list.js';
import { useLive, useRows } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { Moment } from '../shell/moments.js';
import { addressOf } from '../shell/route.js';
import { EventView } from './event_view.js';
import { Replays } from './replays.js';
import { Began, reasonOf } from './words.js';

export function View({ api, slug, role, at }) {
  const named = useLive(slug, async () => new Map((await api.read('automations', { limit: 200 })).items.map(({ id, name }) => [id, name])), (data) => (data ? null : 3_000));
  const names = named.data ?? new Map();
  const nameOf = (id) => names.get(id) ?? 'An automation';
  const told = { api, slug, role, names, nameOf };
  if (at.id) return html`<${EventView} key=${at.id} id=${at.id} ...${told} />`;
  if (at.query.replay) return html`<${Replays} at=${at.query} ...${told} />`;
  return html`<${Events} query=${at.query} ...${told} />`;
}

function Events({ api, slug, query, names, nameOf }) {
  const fields = [
    { name: 'matched', word: 'Outcome', options: [['', 'Any outcome'], ['false', 'Began nothing']] },
    { name: 'automation_id', word: 'Automation', options: [['', 'Any automation'], ...names] },
    { name: 'service', word: 'Service' },
    SINCE,
  ];
  const rows = useRows(`${slug} ${JSON.stringify(query)}`, (cursor) => api.read('events', { limit: 50, cursor, ...asked(query, fields) }));
  const columns = [
    { head: 'Event', cls: 'c-who wrap', cell: (event) => html`<bdi>${event.service}: ${event.event_type}</bdi>`, below: (event) => html`<span class="sub"><${Moment} at=${event.created_at} /></span>${reasonOf(event) && html`<span class="below quiet"><bdi>${reasonOf(event)}</bdi></span>`}` },
    { head: 'Began', cls: 'c-st', cell: (event) => html`<${Began} of=${event} />` },
    { head: 'Automation', cls: 'c-agent wrap', cell: ({ matched, woke = [], unmatched }) => html`<bdi>${[...matched, ...woke, ...unmatched].map(({ automation_id: id }) => nameOf(id)).join(', ')}</bdi>` },
    { head: 'Came in', cls: 'num c-when', cell: (event) => html`<${Moment} at=${event.created_at} />` },
  ];
  const to = (changed) => addressOf({ slug, page: 'events', query: changed });
  const filtered = fields.some(({ name }) => query[name]);
  const empty = html`<${Nothing} icon="inbox" title=${filtered ? 'No event matches' : 'No event yet'}>
    <p class="quiet">${filtered ? 'Change or clear the filters above.' : 'Connect a hook at a service. Each event that it sends appears here, with the runs that it began or the reason why it began none.'}</p><//>`;
  return html`<${Main} title="Events" acts=${html`<a class="btn" id="replays" href=${addressOf({ slug, page: 'events', query: { replay: 'all' } })}>Replays</a>`}>
    <div class="listside"><${Filters} fields=${fields} query=${query} to=${to} />
      <${List} what="Events" name="calls" rows=${rows} columns=${columns} hrefOf=${({ id }) => addressOf({ slug, page: 'events', id })} empty=${empty} /></div>
  <//>`;
}
