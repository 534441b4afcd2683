// The organization's own accounts at VAPI and at a model's service. Keys are never shown.

import { html } from '../htm-preact.js';
import { Failed, Skeleton } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact } from '../shell/moments.js';
import { whyNot } from '../shell/roles.js';
import { Sure } from '../shell/acting.js';
import { SavedForm } from '../shell/saving.js';
import { Status } from '../shell/status.js';

const SERVICES = {
  vapi: { title: 'VAPI', about: 'The account in which your assistants and their tools are.', schema: { title: 'Key', $ref: '#/VapiKey' }, then: 'Agents and tools of this account stop working until another key is stored. It is refused while agents or tools belong to the account.' },
  llm: { title: 'Language model', about: 'The service that writes answers in the chat, and in runs of automations.', schema: { properties: { key: { oneOf: [{ title: 'API key', $ref: '#/LlmKey' }, { title: 'OAuth client', $ref: '#/LlmClient' }] } }, required: ['key'] }, then: 'The platform’s model answers from now on, and its budget counts.' },
};
const WORDS = { labels: { api_key: 'API key', webhook_bearer: 'Bearer token of the credential', base_url: 'Base URL', token_url: 'Token URL', key: 'How it signs in' }, variants: { 'key.API key': 'With an API key', 'key.OAuth client': 'As an OAuth client' } };

export function View({ api, slug, role }) {
  const { data, error, at, again } = useLive(`${slug} keys`, () => api.read('keys'));
  const refused = whyNot(role, 'admin');
  return html`<${Main} title="Service keys"><div class="body">
    <p class="quiet">Without a key of your own, the platform’s account is used. A stored key is kept in a vault and shown to nobody.</p>
    ${error && html`<${Failed} what="The keys" error=${error} at=${at} again=${again} />`}
    ${!data && !error && html`<${Skeleton} what="The keys" />`}
    ${data?.items.map((key) => html`<${Key} key=${key.service} of=${key} api=${api} slug=${slug} refused=${refused} again=${again} />`)}
  </div><//>`;
}

function Key({ of: { service, own, updated_at: since, verify_claims: verifies }, api, slug, refused, again }) {
  const { title, about, schema, then } = SERVICES[service] ?? { title: service, about: '', schema: { $ref: '#/LlmKey' }, then: 'The platform’s account is used from now on.' };
  const path = `keys/${service}`;
  const problemsBelow = service === 'llm' ? (problem) => ({ ...problem, field: `key.${problem.field}` }) : undefined;
  return html`<section class="stack narrow" aria-labelledby="h-${service}"><div class="titled"><h2 id="h-${service}">${title}</h2><${Status} of=${own ? 'approved' : 'not_run'}>${own ? 'Your own' : 'The platform’s'}<//></div>
    <p>${about}${since && html` <span class="quiet">Stored ${exact(since)}.</span>`}</p>
    <${SavedForm} of=${`${slug} ${path}`} since=${since ?? 'none'} name=${service} begin=${() => (verifies ? { key: { verify_claims: true } } : null)} schema=${schema} words=${WORDS} refused=${refused} save=${own ? 'Replace key' : 'Store key'} placed=${problemsBelow} send=${(value) => api.act('PUT', path, value.key ?? value)} onSaved=${again} />
    ${own && html`<div><${Sure} id="delete-${service}" word="Delete key…" title=${`Delete the key for ${title}?`} yes="Delete" refused=${refused} does=${async () => { await api.act('DELETE', path); again(); }}><p>${then} It can be restored for 30 days.</p><//></div>`}
  </section>`;
}
