// Events, newest first, with their runs or the reason for none; and replays of many.

import { html } from '../htm-preact.js';
import { Filtered, useNames } from '../shell/filtered.js';
import { SINCE } from '../shell/filters.js';
import { Moment } from '../shell/moments.js';
import { addressOf } from '../shell/route.js';
import { EventView } from './event_view.js';
import { Replays } from './replays.js';
import { Began, reasonOf } from './words.js';

export function View({ api, slug, role, at }) {
  const names = useNames(api, slug, 'automations');
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
  const columns = [
    { head: 'Event', cls: 'c-who wrap', cell: (event) => html`<bdi>${event.service}: ${event.event_type}</bdi>`, below: (event) => html`<span class="sub"><${Moment} at=${event.created_at} /></span>${reasonOf(event) && html`<span class="below quiet"><bdi>${reasonOf(event)}</bdi></span>`}` },
    { head: 'Began', cls: 'c-st', cell: (event) => html`<${Began} of=${event} />` },
    { head: 'Automation', cls: 'c-agent wrap', cell: ({ matched, woke = [], unmatched }) => html`<bdi>${[...matched, ...woke, ...unmatched].map(({ automation_id: id }) => nameOf(id)).join(', ')}</bdi>` },
    { head: 'Came in', cls: 'num c-when', cell: (event) => html`<${Moment} at=${event.created_at} />` },
  ];
  return html`<${Filtered} api=${api} slug=${slug} query=${query} page="events" title="Events" icon="inbox" fields=${fields} columns=${columns}
    acts=${html`<a class="btn" id="replays" href=${addressOf({ slug, page: 'events', query: { replay: 'all' } })}>Replays</a>`}
    about="Connect a hook at a service. Each event that it sends appears here, with the runs that it began or the reason why it began none." />`;
}
