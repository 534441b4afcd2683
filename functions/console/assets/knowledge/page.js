// Knowledge bases: fields, entries, and loading a table.

import { html, useState } from '../htm-preact.js';
import { useChoices } from '../shell/attachments.js';
import { Collection } from '../shell/collection.js';
import { Icon } from '../shell/icons.js';
import { Failed, Skeleton } from '../shell/list.js';
import { useRows } from '../shell/live.js';
import { exact, Moment } from '../shell/moments.js';
import { addressOf } from '../shell/route.js';
import { Act, Problem, Sure, useAct } from '../shell/acting.js';
import { load, textOf } from './tables.js';

const MAKE = { schema: 'NewKnowledgeBase', first: ['name', 'description', 'fields'] };
const COLUMNS = [
  { head: 'Name', cls: 'c-who wrap', cell: ({ name }) => html`<bdi>${name}</bdi>`, below: ({ description }) => html`<span class="below quiet"><bdi>${description}</bdi></span>` },
  { head: 'Entries', cls: 'num', cell: ({ entries }) => entries },
  { head: 'Changed', cls: 'num c-when', cell: ({ updated_at }) => html`<${Moment} at=${updated_at} />` },
];

export function View(told) {
  return html`<${Collection} told=${told} page="knowledge" path="knowledge-bases" title="Knowledge" one="a knowledge base" icon="book" columns=${COLUMNS} make=${MAKE}
    empty="A knowledge base is a table that agents can search: opening hours, homes for sale, answers to questions."
    detail=${({ item, again, gone, refused }) => html`<${Base} base=${item} api=${told.api} slug=${told.slug} again=${again} gone=${gone} refused=${refused} />`} />`;
}

function Base({ base, api, slug, again, gone, refused }) {
  const path = `knowledge-bases/${base.id}`;
  // Loaded rows may belong between the shown ones, so each load begins the list anew.
  const [loads, count] = useState(0);
  const entries = useRows(`${slug} ${base.id} ${loads}`, (cursor) => api.read(`${path}/entries`, { limit: 50, cursor }));
  const agents = useChoices(api, slug, 'agents', ({ name }) => name);
  const names = base.agent_ids.map((id) => agents.find(({ value }) => value === id)?.word ?? 'an agent');
  return html`<section data-base=${base.entries}><h2><bdi>${base.name}</bdi></h2>${base.description && html`<p class="quiet" dir="auto">${base.description}</p>`}
      <dl class="pairs"><div><dt>Entries</dt><dd>${base.entries}</dd></div><div><dt>Fields</dt><dd>${base.fields.map(({ name, type }) => `${name} (${type})`).join(', ') || 'text alone'}</dd></div>
      <div><dt>Searched by</dt><dd>${base.agent_ids.length === 0 ? html`no agent; <a href=${addressOf({ slug, page: 'agents' })}>attach it to one</a>` : names.map((name, place) => html`${place > 0 && ', '}<a href=${addressOf({ slug, page: 'agents', id: base.agent_ids[place] })}><bdi>${name}</bdi></a>`)}</dd></div><div><dt>Changed</dt><dd>${exact(base.updated_at)}</dd></div></dl></section>
    <${Load} base=${base} path=${path} api=${api} refused=${refused} again=${() => { count((before) => before + 1); again(); }} />
    <section class="stack" aria-labelledby="h-entries"><h2 id="h-entries">Entries</h2>
      ${entries.error && html`<${Failed} what="The entries" error=${entries.error} at=${entries.at} again=${entries.again} />`}
      ${entries.items ? html`<${Entries} rows=${entries} fields=${base.fields} refused=${refused} drop=${async (id) => { await api.act('DELETE', `${path}/entries/${id}`); entries.drop(id); again(); }} />` : !entries.error && html`<${Skeleton} what="The entries" />`}</section>
    <section><${Sure} id="delete-base" word="Delete knowledge base…" title="Delete this knowledge base?" yes="Delete" refused=${refused} does=${async () => { await api.act('DELETE', path); gone(); }}>
      <p>Its ${base.entries} entries are deleted with it, and this cannot be undone. It is refused while agents or tools use it.</p><//></section>`;
}

function Entries({ rows, fields, refused, drop }) {
  const items = [...rows.fresh, ...rows.items];
  if (items.length === 0 && !rows.next) return html`<p class="quiet">Nothing is loaded yet. Choose a table above.</p>`;
  const names = [...fields.map(({ name }) => name), 'text'];
  const cell = (item, name) => String((name === 'text' ? item.text : item.values[name]) ?? '–');
  return html`<div class="sheet" tabindex="0" role="region" aria-label="Table of entries"><table><thead><tr><th scope="col">id</th>${names.map((name) => html`<th scope="col">${name}</th>`)}<th scope="col"><span class="aloud">Delete</span></th></tr></thead>
    <tbody>${items.map((item, place) => html`<tr key=${item.id}><th scope="row"><code>${item.id}</code></th>${names.map((name) => html`<td class="wrap" dir="auto">${cell(item, name)}</td>`)}
      <td><${Sure} id="delete-entry-${place}" word=${html`Delete<span class="aloud"> ${item.id}</span>…`} title=${`Delete ${item.id}?`} yes="Delete" refused=${refused && ' '} does=${() => drop(item.id)}><p>Agents find this entry no more, and this cannot be undone.</p><//></td></tr>`)}</tbody></table></div>
    ${rows.next && html`<div class="listend"><span>${items.length} shown</span><button type="button" class="btn" data-more aria-disabled=${rows.older ? 'true' : null} onClick=${() => !rows.older && rows.more()}>Show more</button></div>`}`;
}

/** In parts; says which rows were not taken. */
function Load({ base, path, api, refused, again }) {
  const [{ done, all, loaded = 0, rows = 0, wrong = [] }, tell] = useState({});
  const [file, choose] = useState(null);
  const { busy, problem, act } = useAct();
  const begin = () => act(async () => {
    const table = textOf(await file.arrayBuffer());
    try {
      await load(table, (text) => api.send('POST', `${path}/entries`, text, 'text/csv'), tell);
    } finally {
      again();
    }
  });
  return html`<section class="stack made" aria-labelledby="h-load"><h2 id="h-load">Load a table</h2>
    <p class="help" id="load-help">A CSV file whose first row names the columns: ${['id', ...base.fields.map(({ name }) => name), 'text'].map((name, place) => html`${place > 0 && ', '}<code>${name}</code>`)}. A row whose id is there replaces it.</p>
    <label for="load-file">CSV file</label><input type="file" id="load-file" accept=".csv,text/csv,.tsv,.txt" aria-describedby="load-help" disabled=${Boolean(refused)} onChange=${({ target }) => { choose(target.files[0] ?? null); tell({}); }} />
    <div class="chips"><${Act} id="load" kind="main" refused=${refused} busy=${busy || !file} onClick=${begin}>${busy ? 'Loading…' : 'Load'}<//></div>
    <div role="status">${all > 0 && html`<p data-loaded=${loaded}>${done < all && busy ? html`<progress max=${all} value=${done} aria-label="Loaded parts"></progress> ` : ''}${loaded} ${loaded === 1 ? 'row' : 'rows'} loaded${rows > 0 ? `, ${rows} not` : ''}.</p>`}</div>
    <${Problem} of=${problem} />
    ${wrong.length > 0 && html`<div class="say bad"><${Icon} name="bad" /><p><b>Repair these rows and load the file again.</b> Rows that were taken are not added twice if they have an id.</p></div>
      <div class="sheet"><table data-refused-rows><thead><tr><th scope="col" class="num">Row</th><th scope="col">Field</th><th scope="col">Problem</th></tr></thead><tbody>${wrong.slice(0, 200).map((one) => html`<tr><th scope="row" class="num">${one.row}</th><td><code>${one.field}</code></td><td class="wrap">${one.problem}</td></tr>`)}</tbody></table></div>`}
  </section>`;
}
