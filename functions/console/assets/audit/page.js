// The audit log, newest first.

import { html } from '../htm-preact.js';
import { Filters } from '../shell/filter_form.js';
import { useNames } from '../shell/filtered.js';
import { asked, SINCE } from '../shell/filters.js';
import { List, Nothing } from '../shell/list.js';
import { useRows } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { Moment } from '../shell/moments.js';
import { Pane } from '../shell/pane.js';
import { PLACES } from '../shell/places.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Values } from '../shell/values.js';
import { actionOf, NOUNS, placeOf } from './words.js';

export function View({ api, slug, role, at }) {
  const refused = whyNot(role, 'admin');
  if (refused) return html`<${Main} title="Audit log"><${Nothing} icon="log" title="The audit log is for admins"><p class="quiet">${refused}</p><//><//>`;
  return html`<${Log} api=${api} slug=${slug} query=${at.query} />`;
}

function Log({ api, slug, query }) {
  const names = useNames(api, slug, 'members', ({ user_id, name }) => name ?? user_id);
  const { entry: chosen, ...filters } = query;
  const fields = [
    { name: 'noun', word: 'What', options: [['', 'Anything'], ...NOUNS] },
    { name: 'actor', word: 'Who', options: [['', 'Anybody'], ...names] },
    { name: 'id', word: 'Id' },
    SINCE,
  ];
  const rows = useRows(`${slug} ${JSON.stringify(filters)}`, async (cursor) => {
    const page = await api.read('audit', { limit: 50, cursor, ...asked(filters, fields) });
    return { ...page, items: page.items.map((entry) => ({ ...entry, of: entry.id, id: entry.entry_id })) };
  });
  const actorOf = ({ actor, via }) => `${names.get(actor) ?? actor ?? 'Switchboard'}${via ? `, through an ${via}` : ''}`;
  const columns = [
    { head: 'What', cls: 'c-who wrap', cell: (entry) => html`${actionOf(entry)} <bdi class="strong">${entry.name ?? ''}</bdi>`, below: (entry) => html`<span class="sub"><bdi>${actorOf(entry)}</bdi> · <${Moment} at=${entry.at} /></span>` },
    { head: 'Who', cls: 'c-agent', cell: (entry) => html`<bdi>${actorOf(entry)}</bdi>` },
    { head: 'Role', cls: 'c-fail', cell: (entry) => entry.role ?? '' },
    { head: 'When', cls: 'num c-when', cell: (entry) => html`<${Moment} at=${entry.at} />` },
  ];
  const to = (changed) => addressOf({ slug, page: 'audit', query: changed });
  const filtered = fields.some(({ name }) => query[name]);
  const entry = rows.items?.find(({ id }) => id === chosen) ?? null;
  const empty = html`<${Nothing} icon="log" title=${filtered ? 'No entry matches' : 'No entry yet'}>
    <p class="quiet">${filtered ? 'Change or clear the filters above.' : 'Each change that a member or an agent makes to the organization is written down here, and kept for a year.'}</p><//>`;
  return html`<${Main} title="Audit log">
    <div class="beside">
      <div class="listside"><${Filters} fields=${fields} query=${filters} to=${to} />
        <${List} what="Audit log" name="calls" rows=${rows} columns=${columns} hrefOf=${({ id }) => addressOf({ slug, page: 'audit', query: { ...filters, entry: id } })} current=${chosen} empty=${empty} /></div>
      <${Pane} id=${chosen} label="Entry">${entry ? html`<${Entry} entry=${entry} who=${actorOf(entry)} slug=${slug} back=${to(filters)} />` : html`<section><p class="quiet">${chosen && rows.items ? 'This entry is not among the listed ones. Show older ones, or change the filters.' : 'Choose an entry to see what it says.'}</p></section>`}<//>
    </div>
  <//>`;
}

function Entry({ entry, who, slug, back }) {
  const page = PLACES.find(({ page }) => page === placeOf(entry))?.page;
  return html`<section class="panehead"><h2>${actionOf(entry)}</h2><div class="acts"><a class="btn bare" data-close href=${back}>Close</a></div></section>
    <section><dl class="pairs">
      <div><dt>Who</dt><dd><bdi>${who}</bdi>${entry.role && `, ${entry.role}`}</dd></div>
      <div><dt>When</dt><dd><${Moment} at=${entry.at} /></dd></div>
      ${entry.name && html`<div><dt>Name</dt><dd><bdi>${entry.name}</bdi></dd></div>`}
      ${entry.of && html`<div><dt>Id</dt><dd><code>${entry.of}</code></dd></div>`}
    </dl>${page && html`<a class="btn" href=${addressOf({ slug, page, id: entry.of })}>Open it</a>`}</section>
    ${Object.keys(entry.details ?? {}).length > 0 && html`<section><h3>Details</h3><${Values} values=${entry.details} /></section>`}`;
}
