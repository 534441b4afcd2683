// A place's list with filters in the address.

import { html } from '../htm-preact.js';
import { Filters } from './filter_form.js';
import { asked } from './filters.js';
import { List, Nothing } from './list.js';
import { useLive, useRows } from './live.js';
import { Main } from './main.js';
import { pages } from './pages.js';
import { addressOf } from './route.js';

/** Tells a list's reader that there are more; empty if there are none. */
export function restOf({ items = [], next_cursor: next } = {}) {
  return next ? [`Only the first ${items.length} are listed`] : [];
}

/** Words by id, empty until they have come. Under `false` stands that there are more. */
export function useNames(api, slug, path, wordOf = ({ name }) => name) {
  const { data } = useLive(`${slug} ${path}`, () => pages((cursor) => api.read(path, { limit: 200, cursor })), (data) => (data ? null : 3_000));
  return new Map([...(data?.items ?? []).map((item) => [item.id ?? item.user_id, wordOf(item)]), ...restOf(data).map((word) => [false, word])]);
}

/** `page`: the place and its route; `about`: a sentence for an empty list; `meant`: the query for the API. */
export function Filtered({ api, slug, query, meant = query, page, title, icon, about, acts, fields, columns, hrefOf = ({ id }) => addressOf({ slug, page, id }) }) {
  const rows = useRows(`${slug} ${JSON.stringify(query)}`, (cursor) => api.read(page, { limit: 50, cursor, ...asked(meant, fields) }));
  const filtered = fields.some(({ name }) => query[name]);
  const empty = html`<${Nothing} icon=${icon} title=${`No ${page.slice(0, -1)} ${filtered ? 'matches' : 'yet'}`}><p class="quiet">${filtered ? 'Change or clear the filters above.' : about}</p><//>`;
  return html`<${Main} title=${title} acts=${acts}>
    <div class="listside"><${Filters} fields=${fields} query=${query} to=${(changed) => addressOf({ slug, page, query: changed })} />
      <${List} what=${title} name="calls" rows=${rows} columns=${columns} hrefOf=${hrefOf} empty=${empty} /></div>
  <//>`;
}
