// The do-not-call list: numbers that no tool calls. An entry has the last two digits of its number only.

import { html } from '../htm-preact.js';
import { Sure } from '../shell/acting.js';
import { Collection } from '../shell/collection.js';
import { Filters } from '../shell/filter_form.js';
import { exact, Moment } from '../shell/moments.js';
import { pages } from '../shell/pages.js';
import { asNumber } from '../shell/phone_number.js';
import { Refused } from '../shell/problems.js';
import { addressOf } from '../shell/route.js';

const PATH = 'do-not-call';
const SOURCES = { member: 'A member listed it', sms: 'The person texted STOP or the like', call: 'The person asked for it in a call' };
const sourceOf = ({ source }) => SOURCES[source] ?? 'It was listed in another way';
const COLUMNS = [
  { head: 'Number', cls: 'c-who', cell: ({ ending }) => ending, below: (entry) => html`<span class="below quiet">${sourceOf(entry)}</span>` },
  { head: 'Listed', cls: 'num c-when', cell: ({ created_at: at }) => html`<${Moment} at=${at} />` },
];
const NUMBER = [{ name: 'number', word: 'Look up a number' }];
const SCHEMA = { properties: { phone_number: { type: 'string', description: 'It begins with + and the country code.' } }, required: ['phone_number'] };

const meant = (number) => asNumber(number) ?? number;

export function View(told) {
  const { api, slug, at } = told;
  const { number = '' } = at.query;
  const make = { schema: SCHEMA, begin: () => ({ phone_number: number }), send: ({ phone_number }) => api.act('POST', PATH, { phone_number: meant(phone_number) }) };
  return html`<${Collection} told=${told} page="donotcall" path=${PATH} title="Do-not-call list" one="a number" icon="stop" columns=${COLUMNS} make=${make}
    query=${{ number: number ? meant(number) : null }} find=${(id, shown) => found(api, id, shown)}
    note=${html`<${Filters} fields=${NUMBER} query=${at.query} to=${(query) => addressOf({ slug, page: 'donotcall', query })} />`}
    none=${number ? 'It is not on the list' : 'No number is on the list yet'}
    empty=${number ? 'Tools may call this number.' : 'No tool calls a listed number. Persons are listed when they text STOP or ask for no more calls, and others when you add them.'}
    detail=${({ item, gone, refused }) => html`<${Entry} entry=${item} api=${api} gone=${gone} refused=${refused} />`} />`;
}

/** No route gives one entry. */
async function found(api, id, shown) {
  const fits = (entry) => entry.id === id;
  const known = shown?.find(fits);
  if (known) return known;
  const { items, next_cursor: more } = await pages((cursor) => api.read(PATH, { limit: 200, cursor }));
  const entry = items.find(fits);
  if (entry) return entry;
  throw more ? new Error(`Only the first ${items.length} entries were looked through. Look it up by its number.`) : new Refused(404, 'not_found', 'The entry was not found.');
}

function Entry({ entry, api, gone, refused }) {
  return html`<section data-entry=${entry.ending}><h2>${entry.ending}</h2>
      <dl class="pairs"><div><dt>Why</dt><dd>${sourceOf(entry)}</dd></div><div><dt>Listed</dt><dd>${exact(entry.created_at)}</dd></div></dl>
      <p class="quiet small">The number itself is not kept: it is recognized by a digest. An erasure of the number leaves the entry.</p></section>
    <section><${Sure} id="unlist" word="Take it off…" title=${`Take ${entry.ending} off the list?`} yes="Take it off" refused=${refused} does=${async () => { await api.act('DELETE', `${PATH}/${entry.id}`); gone(); }}>
      <p>From their next call on, tools may call this person again. Do it if the number was listed by mistake, or if the person wants to be called.</p><//></section>`;
}
