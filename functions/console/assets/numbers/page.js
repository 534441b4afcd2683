// Phone numbers, with the agent that each rings and the account.

import { html } from '../htm-preact.js';
import { useChoices } from '../shell/attachments.js';
import { Collection } from '../shell/collection.js';
import { exact } from '../shell/moments.js';
import { Sure } from '../shell/acting.js';
import { SavedForm } from '../shell/saving.js';
import { changes } from '../shell/schema.js';

const WORDS = { labels: { agent_id: 'Rings', fallback_number: 'If the agent cannot answer, call', fallback_sentence: 'Otherwise say', language: 'Spoken language', twilio: 'Twilio account', account_sid: 'Account SID', auth_token: 'Auth token', api_key_sid: 'API key SID', api_key_secret: 'API key secret', vapi_phone_number_id: 'Number’s id at VAPI' } };
const SPOKEN = ['label', 'agent_id', 'fallback_number', 'fallback_sentence', 'language'];
const FIRST = ['number', ...SPOKEN, 'twilio'];

export function View(told) {
  const { api, slug } = told;
  const agents = useChoices(api, slug, 'agents', ({ name }) => name);
  const agentOf = (id) => agents.find(({ value }) => value === id)?.word ?? (id ? '…' : 'nobody');
  const look = { first: FIRST, words: WORDS, choices: { agent_id: agents } };
  const columns = [
    { head: 'Number', cls: 'c-who wrap', cell: ({ number }) => number, below: ({ label }) => html`<span class="below quiet"><bdi>${label}</bdi></span>` },
    { head: 'Rings', cls: 'wrap', cell: ({ agent_id: agent }) => html`<bdi>${agentOf(agent)}</bdi>` },
  ];
  return html`<${Collection} told=${told} page="numbers" path="phone-numbers" title="Phone numbers" one="a number" icon="call" columns=${columns} make=${{ schema: 'NewPhoneNumber', ...look }}
    empty="Register a number of your Twilio account, and say which agent it rings."
    detail=${({ item, again, gone, refused }) => html`<${PhoneNumber} item=${item} api=${api} slug=${slug} look=${look} again=${again} gone=${gone} refused=${refused} rings=${agentOf(item.agent_id)} />`} />`;
}

function PhoneNumber({ item, api, slug, look, again, gone, refused, rings }) {
  const path = `phone-numbers/${item.id}`;
  const before = Object.fromEntries(Object.entries(item).filter(([name, value]) => [...SPOKEN, 'vapi_phone_number_id', 'wait_ms'].includes(name) && value !== null));
  return html`<section><h2>${item.number}</h2><p class="quiet small">Changed ${exact(item.updated_at)}. Its credentials are kept and never shown.</p></section>
    <section><${SavedForm} of=${`${slug} ${path}`} since=${item.updated_at} name="number" schema="PhoneNumberChange" begin=${() => before} refused=${refused} save="Save number"
      send=${(value) => api.act('PATCH', path, changes(before, value))} onSaved=${again} ...${look} /></section>
    <section><${Sure} id="delete-number" word="Remove number…" title=${`Remove ${item.number}?`} yes="Remove" refused=${refused} does=${async () => { await api.act('DELETE', path); gone(); }}>
      <p>Calls to it no longer reach ${rings === 'nobody' ? 'an agent' : html`<bdi>${rings}</bdi>`} through this service, and tools that send from it fail. The number stays at Twilio; its credentials can be restored for 30 days.</p><//></section>`;
}
