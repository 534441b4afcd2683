// Makes or edits a tool by a form, beside a trial of its request.

import { html } from '../htm-preact.js';
import { useChoices } from '../shell/attachments.js';
import { Choices } from '../shell/list.js';
import { Main } from '../shell/main.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { SavedForm } from '../shell/saving.js';
import { begun, changes } from '../shell/schema.js';
import { configOf, TYPES } from './configs.js';
import { Trial } from './trial.js';

const FIRST = ['label', 'description', 'method', 'url', 'from', 'recipients', 'text', 'knowledge_base_id', 'query', 'pipedreamMetadata', 'params', 'target', 'destinations', 'message', 'messageStrategy', 'headers', 'body'];
const SCHEMAS = { sms: 'SmsConfig', api_request: 'ApiRequestConfig', pipedream_action: 'PipedreamActionConfig', transfer_call: 'TransferCallConfig', place_call: 'PlaceCallConfig', query: 'QueryConfig' };
/** They cannot send the result of a call that is over. */
const NOT_LATER = ['transfer_call', 'query'];
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((value) => ({ value, word: value }));
/** By type. */
const SECRETS = ['api_request', 'pipedream_action'];
const WORDS = {
  labels: { label: 'Name for people', description: 'What the model is told', async: 'The agent goes on without waiting', attach_to_agent: 'Agents can call it', execute_on_call_start: 'Runs when a call starts', method: 'Method', url: 'Address', chat: 'Called for people', from: 'Sent from', recipients: 'Recipients', text: 'Text', fixedValues: 'Always', aiExtension: 'More from the model', enabled: 'The model may add some', prompt: 'Description for the model', required: 'The model must give it', schema: 'Kind of value', phone_number_id: 'Phone number', agent_id: 'Agent', knowledge_base_id: 'Knowledge base', pipedreamMetadata: 'Action', preloadedParams: 'Always sent', params: 'Parameters', redact: 'Hidden in the history', target: 'To whom', value: 'Value', 'schema.required': 'Required members', 'schema.description': 'What it is', 'schema.enum': 'Only these values', secret: 'The value is a secret', messageStrategy: 'What the recipient hears first', least_role: 'Least role', consent: 'Ask the person first, in the chat' },
  variants: { called_number: 'The number that was called', specific_number: 'One of your numbers', caller_only: 'The caller only', 'allowed_recipients.array': 'These numbers', number: 'A phone number', sip: 'A SIP address', assistant: 'Another agent', sms: 'An SMS' },
};

/** Changes `tool`, or makes one. */
export function Editor({ tool = null, type, api, slug, role, onSaved, onConflict }) {
  const refused = whyNot(role, 'admin');
  const numbers = useChoices(api, slug, 'phone-numbers', ({ number, label }) => `${label} (${number})`);
  const bases = useChoices(api, slug, 'knowledge-bases', ({ name }) => name);
  const kind = tool?.type ?? (type in SCHEMAS ? type : 'sms');
  const agents = useChoices(api, slug, 'agents', ({ name }) => name, ({ id, external_assistant_id: at }) => (kind === 'place_call' ? id : at));
  const sends = ({ id, type, async: waits, config_metadata: config }) => id !== tool?.id && !waits && !NOT_LATER.includes(type) && !config?.confirm && !(type === 'api_request' && config?.method === 'GET');
  const useLater = () => useChoices(api, slug, 'tools', ({ label }) => label, undefined, sends);
  const crumb = { word: tool ? tool.label : 'Tools', href: addressOf({ slug, page: 'tools', id: tool?.id }) };
  const path = tool ? `tools/${tool.id}` : 'tools';
  const before = tool && configOf(tool);
  const send = (value) => {
    if (!tool) return api.act('POST', path, value);
    return api.act('PATCH', path, changes(before, value), { 'if-match': String(tool.version) });
  };
  const begin = (schemas) => before ?? { ...begun({ $ref: `#/${SCHEMAS[kind]}` }, schemas), type: kind };
  const look = { name: 'tool', schema: SCHEMAS[kind], first: FIRST, hidden: ['type'], without: SECRETS.includes(kind) ? [] : ['secret'], words: WORDS, choices: { method: METHODS, phone_number_id: numbers, knowledge_base_id: bases, assistantId: agents, ...(kind === 'place_call' && { agent_id: agents }), 'if_call_over.tool': useLater } };
  return html`<${Main} title=${tool ? 'Edit tool' : 'New tool'} crumb=${crumb} acts=${!tool && html`<${Choices} label="What it does" of=${TYPES} to=${(value) => addressOf({ slug, page: 'tools', id: 'new', query: { type: value } })} chosen=${kind} />`}>
    <div class="beside editor"><${SavedForm} of=${`${slug} ${path} ${kind}`} since=${tool ? String(tool.version) : ''} begin=${begin} send=${send} onSaved=${onSaved} onConflict=${onConflict} save=${tool ? 'Save tool' : 'Create tool'} refused=${refused} ...${look}
      beside=${({ value, changed, schemas }) => html`<aside class="pane" aria-label="Dry run"><${Trial} key=${kind} api=${api} config=${value} tool=${changed ? null : tool} role=${role} schemas=${schemas} /></aside>`} /></div>
  <//>`;
}
