// The organization's own accounts at VAPI and at a model's service. Keys are never shown.

import { html } from '../htm-preact.js';
import { Failed, Skeleton } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact } from '../shell/moments.js';
import { Refused } from '../shell/problems.js';
import { whyNot } from '../shell/roles.js';
import { Sure } from '../shell/acting.js';
import { SavedForm } from '../shell/saving.js';
import { Status } from '../shell/status.js';

const SERVICES = {
  vapi: { title: 'VAPI', about: 'The account in which your assistants and their tools are.', schema: { title: 'Key', $ref: '#/VapiKey' }, then: 'Agents and tools of this account stop working until another key is stored. It is refused while agents or tools belong to the account.' },
  llm: { title: 'Language model', about: 'The service that writes answers in the chat, and in runs of automations.', schema: { properties: { key: { oneOf: [{ title: 'API key', $ref: '#/LlmKey' }, { title: 'OAuth client', $ref: '#/LlmClient' }] } }, required: ['key'] }, then: 'The platform’s model answers from now on, and its budget counts.' },
};
/** The next key of a service begins with them. */
const SETTINGS = ['base_url', 'model', 'token_url', 'scope', 'audience', 'verify_claims'];
const DROPPED = { bearer_dropped: { type: 'boolean', title: 'Store the key without a bearer token', description: 'If VAPI sends one, its reports are refused: the ends of calls, their costs and do-not-call wishes are lost.' } };
const LEFT_OUT = 'Enter the stored bearer token again, or choose below to store the key without one.';
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

function Key({ of: { service, own, updated_at: since, has_webhook_bearer: bears, ...shown }, api, slug, refused, again }) {
  const { title, about, schema, then } = SERVICES[service] ?? { title: service, about: '', schema: { $ref: '#/LlmKey' }, then: 'The platform’s account is used from now on.' };
  const path = `keys/${service}`;
  // Of a key that an earlier version stored, nobody knows.
  const mayBear = service === 'vapi' && own && bears !== false;
  const settings = Object.fromEntries(SETTINGS.map((name) => [name, shown[name]]).filter(([, value]) => value));
  // Without its token URL, too, it is a client: these members tell it from a key.
  const begun = settings.token_url ? { client_id: '', client_secret: '', ...settings } : settings;
  const send = async ({ bearer_dropped: drops, ...value }) => {
    if (mayBear && !drops && !value.webhook_bearer) throw new Refused(422, '', LEFT_OUT, { fields: [{ field: 'webhook_bearer', problem: LEFT_OUT }] });
    return api.act('PUT', path, value.key ?? value);
  };
  const problemsBelow = service === 'llm' ? (problem) => ({ ...problem, field: `key.${problem.field}` }) : undefined;
  return html`<section class="stack narrow" aria-labelledby="h-${service}"><div class="titled"><h2 id="h-${service}">${title}</h2><${Status} of=${own ? 'approved' : 'not_run'}>${own ? 'Your own' : 'The platform’s'}<//></div>
    <p>${about}${since && html` <span class="quiet">Stored ${exact(since)}.</span>`}</p>
    <${SavedForm} of=${`${slug} ${path}`} since=${since ?? 'none'} name=${service} begin=${() => (service === 'llm' ? { key: begun } : null)} schema=${mayBear ? { ...schema, properties: DROPPED } : schema} unfolded=${own} words=${WORDS} refused=${refused} save=${own ? 'Replace key' : 'Store key'}
      note=${own && 'A key is replaced as a whole. Enter all of its fields again: a field that is empty here is gone.'} placed=${problemsBelow} send=${send} onSaved=${again} />
    ${own && html`<div><${Sure} id="delete-${service}" word="Delete key…" title=${`Delete the key for ${title}?`} yes="Delete" refused=${refused} does=${async () => { await api.act('DELETE', path); again(); }}><p>${then} It can be restored for 30 days.</p><//></div>`}
  </section>`;
}
