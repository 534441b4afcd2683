// Services: connections, their accounts, and the next step where a connection is missing or has expired.

import { html, useState } from '../htm-preact.js';
import { Icon } from '../shell/icons.js';
import { Choices, Failed, List, Nothing } from '../shell/list.js';
import { useLive, useRows } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Act, Problem, Sure, useAct } from '../shell/acting.js';
import { SavedForm } from '../shell/saving.js';
import { Status } from '../shell/status.js';
import { TextInput } from '../shell/text_input.js';

const FILTERS = [['', 'All'], ['true', 'Connected'], ['false', 'Not connected']];
const STATES = { connected: ['approved', 'Connected'], not_connected: ['not_run', 'Not connected'], expired: ['failed', 'Expired'], not_needed: ['ended', 'Needs no account'], unknown: ['unknown', 'Could not be asked'] };
/** The next step on this page; for an incomplete connection the API has it. */
const NEXT = { not_connected: 'Its actions cannot be used until an account is connected.', expired: 'The account is not let in any more: actions and automations that use it fail until it is connected again.', unknown: 'The state could not be read. Look again in a minute.' };
const EVERY = 3_000;

function State({ of: { state } }) {
  const [shape, word] = STATES[state] ?? ['unknown', state];
  return html`<${Status} of=${shape}>${word}<//>`;
}

const COLUMNS = [
  { head: 'Service', cls: 'c-who wrap', cell: ({ name }) => html`<bdi>${name}</bdi>`, below: ({ description }) => html`<span class="below quiet"><bdi>${description}</bdi></span>` },
  { head: 'State', cls: 'wrap', cell: ({ connection }) => html`<${State} of=${connection} />`, },
  { head: 'Actions', cls: 'num c-len', cell: ({ tools }) => tools },
];

export function View({ api, slug, role, at }) {
  const { q = '', connected = '' } = at.query;
  const rows = useRows(`${slug} ${q} ${connected}`, async (cursor) => {
    const page = await api.read('services', { limit: 50, cursor, q: q || null, connected: connected || null });
    return { ...page, items: page.items.map((service) => ({ id: service.name, ...service })) };
  });
  const hrefOf = (id, query = { q, connected }) => addressOf({ slug, page: 'services', id, query });
  // It may be beyond the rows, or have left the filter.
  const live = useLive(at.id && `${slug} ${at.id}`, async () => (await api.read('services', { q: at.id, limit: 200 })).items.find(({ name }) => name === at.id) ?? null, () => EVERY);
  const chosen = live.data ?? rows.items?.find(({ id }) => id === at.id);
  const again = () => {
    live.again();
    rows.again();
  };
  const empty = html`<${Nothing} icon="plug" title="No service matches"><p class="quiet">Search for another word, or choose another state above.</p><//>`;
  return html`<${Main} title="Services" acts=${html`<${Choices} label="State" of=${FILTERS} to=${(value) => hrefOf(null, { q, connected: value })} chosen=${connected} />`}>
    <div class="beside master" data-open=${at.id ? 'true' : null}>
      <div class="listside"><${Search} q=${q} seek=${(words) => { location.hash = hrefOf(null, { q: words, connected }); }} />
        <${List} what="Services" name="calls" rows=${rows} columns=${COLUMNS} hrefOf=${({ id }) => hrefOf(id)} current=${at.id} empty=${empty} /></div>
      <aside class="pane" aria-label="Service">${at.id && html`<section class="panehead"><a class="crumb" data-close href=${hrefOf(null)}>Services</a></section>`}
        ${chosen ? html`<${Service} key=${chosen.name} service=${chosen} api=${api} slug=${slug} again=${again} refused=${whyNot(role, 'admin')} />`
          : live.data === null ? html`<section><p>There is no such service.</p></section>`
          : live.error ? html`<${Failed} what="The service" error=${live.error} again=${again} />`
          : !at.id && html`<section><p class="quiet">Choose a service to connect it, or to see whose account acts.</p></section>`}</aside>
    </div>
  <//>`;
}

function Search({ q, seek }) {
  return html`<div class="made bar" role="search"><label class="aloud" for="seek">Search services</label><${TextInput} id="seek" type="search" placeholder="Search services" value=${q} maxlength="200" onChange=${({ target }) => seek(target.value.trim())} /></div>`;
}

function Service({ service, api, slug, again, refused }) {
  const { name, description, categories, connection, connection_kind: kind } = service;
  const path = `services/${encodeURIComponent(name)}`;
  const { accounts = [], working = [], next_step: missing, state } = connection;
  const next = working.length > 0 ? 'The account is refused. Let another one act.' : NEXT[state] ?? missing;
  const { busy, problem, act } = useAct();
  const change = (does) => act(async () => (await does(), again()));
  return html`<section class="stack" data-service=${state}><div class="titled"><h2><bdi>${name}</bdi></h2><${State} of=${connection} /></div><p dir="auto">${description}</p><p class="quiet small">${categories.join(' · ')}</p>
      ${next && html`<div class="say ${state === 'expired' ? 'bad' : 'wait'}"><${Icon} name=${state === 'expired' ? 'bad' : 'wait'} /><p>${next}</p></div>`}</section>
    ${accounts.length > 0 && html`<section class="stack"><h3>Accounts</h3><ul class="tools">${[...accounts, ...working].map((account, place) => html`<li key=${account.id}><bdi>${account.name}</bdi> ${state === 'expired' && place < accounts.length ? html`<${State} of=${connection} />` : place === 0 ? html`<${Status} of="approved">Acts<//>` : html`<${Act} id="acts-${place}" refused=${refused && ' '} busy=${busy} onClick=${() => change(() => api.act('PUT', `${path}/account`, { account_id: account.id }))}>Let it act<//>`}
      <${Sure} id="disconnect-${place}" word="Disconnect…" title=${`Disconnect ${account.name}?`} yes="Disconnect" refused=${refused && ' '} does=${async () => { await api.act('DELETE', `${path}/connection?account=${encodeURIComponent(account.id)}`); again(); }}><p>Tools and automations that act at ${name} with this account fail from now on.</p><//></li>`)}</ul>
      <p class="quiet small">The account's permissions are not known here. An action that lacks one fails, and its execution shows the refusal. Connect the account again and allow it.</p></section>`}
    <${Problem} of=${problem} />
    <section class="stack"><${Connect} kind=${kind} state=${working.length > 0 ? 'connected' : state} accounts=${JSON.stringify([state, accounts, working])} name=${name} path=${path} api=${api} slug=${slug} again=${again} refused=${refused} /></section>`;
}

function Connect({ kind, state, accounts, name, path, api, slug, again, refused }) {
  if (kind.type === 'none') return html`<p class="quiet">It needs no account: its actions can be used at once.</p>`;
  if (kind.type === 'phone_number') return html`<p>It acts with your phone numbers.</p><a class="btn" href=${addressOf({ slug, page: 'numbers', id: 'new' })}>Register a number</a>`;
  if (kind.type === 'credential') {
    const fields = kind.fields ?? [];
    const schema = { properties: Object.fromEntries(fields.map(({ name: field, description, secret }) => [field, { type: 'string', description, writeOnly: secret }])), required: fields.map(({ name: field }) => field) };
    return html`<h3>${state === 'connected' ? 'Replace the credential' : 'Connect it'}</h3><${SavedForm} of=${`${slug} ${path}`} name="service" schema=${schema} refused=${refused} save="Store credential" send=${(value) => api.act('POST', `${path}/connect`, value)} onSaved=${again} />`;
  }
  return html`<${SignIn} key=${accounts} state=${state} name=${name} path=${path} api=${api} refused=${refused} />`;
}

/** A link serves for one account, and expires. */
function SignIn({ state, name, path, api, refused }) {
  const [link, open] = useState(null);
  const { busy, problem, act } = useAct();
  const begin = () => act(async () => open((await api.act('POST', `${path}/connect`, {})).url));
  const word = { connected: 'Connect another account', expired: 'Connect it again' }[state] ?? 'Connect it';
  return html`${link ? html`<p>Sign in at ${name} in another tab, and let this service in. This page follows by itself.</p><a class="btn main" id="connect-link" href=${link} target="_blank" rel="noopener noreferrer">Sign in at ${name}</a> <${Act} id="new-link" refused=${refused && ' '} busy=${busy} onClick=${begin}>Get a new link<//>` : html`<${Act} id="connect" kind="main" refused=${refused} busy=${busy} onClick=${begin}>${word}<//>`}<${Problem} of=${problem} />`;
}
