// A list, and beside it the chosen thing or the form of a new one.

import { html } from '../htm-preact.js';
import { Failed, List, Nothing, Skeleton } from './list.js';
import { useLive, useRows } from './live.js';
import { Main } from './main.js';
import { Refused } from './problems.js';
import { whyNot } from './roles.js';
import { addressOf } from './route.js';
import { SavedForm } from './saving.js';

const NEW = 'new';

/**
 * `title` names the place, `one` a thing, `path` the routes, `detail` draws a thing and takes `{item, again, gone, refused}`. `make` is the
 * form of a new one, or null where nothing is made; `onMade` may say something about it once. `query` is the
 * list's; `find(id, shown)` reads a thing that has no route of its own.
 */
export function Collection({ told, page, title, one, path = page, query = {}, find = null, icon, columns, none = `No ${title.toLowerCase()} yet`, empty, make, detail, note = null }) {
  const { api, slug, role, at } = told;
  const rows = useRows(`${slug} ${page} ${JSON.stringify(query)}`, (cursor) => api.read(path, { limit: 50, cursor, ...query }));
  const hrefOf = (id) => addressOf({ slug, page, id, query: at.query });
  const back = hrefOf(null);
  const refused = whyNot(role, 'admin');
  const add = `Add ${one}`;
  const nothing = html`<${Nothing} icon=${icon} title=${none}><p class="quiet">${empty}</p>${make && html`<a class="btn" href=${hrefOf(NEW)}>${add}</a>`}<//>`;
  const made = (item, here) => {
    make.onMade?.(item);
    rows.add(item);
    if (here) location.hash = hrefOf(item.id);
  };
  const gone = () => {
    rows.drop(at.id);
    location.hash = back;
  };
  return html`<${Main} title=${title} acts=${make && html`<a class="btn main" id="add" href=${hrefOf(NEW)}>${add}</a>`}>
    <div class="beside master" data-open=${at.id ? 'true' : null}>
      <div class="listside">${note}<${List} what=${title} name="calls" rows=${rows} columns=${columns} hrefOf=${({ id }) => hrefOf(id)} current=${at.id} empty=${nothing} /></div>
      <aside class="pane" aria-label=${add.slice(4)}>
        ${at.id && html`<section class="panehead"><a class="crumb" data-close href=${back}>${title}</a></section>`}
        ${at.id === NEW && make ? html`<section><h2>${add}</h2><${SavedForm} of=${[slug, page, ...Object.values(query)].filter(Boolean).join(' ')} name=${page} refused=${refused} save=${add} send=${(value) => api.act('POST', path, value)} onSaved=${made} ...${make} /></section>`
          : at.id ? html`<${One} key=${at.id} id=${at.id} one=${one} icon=${icon} path=${path} api=${api} find=${find && ((id) => find(id, rows.items))} slug=${slug} back=${back} detail=${(item, again) => detail({ item, again: () => (again(), rows.again()), gone, refused })} />`
          : html`<section><p class="quiet">Choose ${one} to see it here.</p></section>`}
      </aside>
    </div>
  <//>`;
}

/** The thing with this id, read alone: by `find`, or at its path. `detail` also takes `again` and `put`. */
export function One({ id, one, icon, path, api, find, slug, back, detail }) {
  const { data, error, again, put } = useLive(`${slug} ${id}`, () => find?.(id) ?? api.read(`${path}/${encodeURIComponent(id)}`));
  if (data) return detail(data, again, put);
  const gone = error instanceof Refused && error.status === 404;
  if (gone) return html`<${Nothing} icon=${icon} title="It is not there"><p class="quiet">It was deleted, or the address is of another organization.</p><a class="btn" href=${back}>See all</a><//>`;
  return error ? html`<${Failed} what=${one} error=${error} again=${again} />` : html`<${Skeleton} what=${one} />`;
}
