import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';
import { waitingIn } from '../assets/approvals/asked.js';
import { View as Approvals } from '../assets/approvals/page.js';
import { View as Audit } from '../assets/audit/page.js';
import { Chart } from '../assets/chat/chart.js';
import { Attachments, useChoices } from '../assets/shell/attachments.js';
import { Filters } from '../assets/shell/filter_form.js';
import { useNames } from '../assets/shell/filtered.js';
import { Form } from '../assets/shell/form.js';
import { Editor } from '../assets/tools/editor.js';

/** An API with so many agents. */
const withAgents = (count) => ({
  read: async (_, { limit, cursor }) => {
    const from = Number(cursor ?? 0);
    const until = Math.min(from + limit, count);
    return { items: Array.from({ length: until - from }, (_, place) => ({ id: `a${from + place}`, name: `Agent ${from + place}` })), next_cursor: until < count ? String(until) : null };
  },
});

function Lists({ api }) {
  const agents = useChoices(api, 'acme', 'agents', ({ name }) => name);
  const names = useNames(api, 'acme', 'agents');
  return html`<section id="attached"><${Attachments} id="x" title="Agents" what="an agent" has=${{ data: { items: [] } }} all=${agents} wordOf=${() => ''} hrefOf=${() => ''} empty="" /></section>
    <section id="form"><${Form} schemas=${{}} schema=${{ properties: { agent: { type: 'string' } }, required: ['agent'] }} value=${{}} choices=${{ agent: agents }} onChange=${() => {}} /></section>
    <section id="filter"><${Filters} fields=${[{ name: 'agent', word: 'Agent', options: [['', 'Any agent'], ...names] }]} query=${{}} to=${() => ''} /></section>`;
}

test('lists of choices have the things of all pages, and say so where there are still more', async () => {
  for (const [count, listed, more] of [[450, 450, []], [1_200, 1_000, ['Only the first 1000 are listed']]]) {
    aPage();
    render(html`<${Lists} key=${count} api=${withAgents(count)} />`, document.body);
    await settled();
    for (const id of ['attached', 'form', 'filter']) {
      const options = document.body.at(id).all(({ localName }) => localName === 'option').slice(1);
      const off = options.filter(({ attributes }) => attributes.disabled === 'true');
      assert.deepEqual([options.length - off.length, off.map(({ textContent }) => textContent)], [listed, more], id);
    }
    render(null, document.body);
  }
});

test('waiting approvals are read to a bound', async () => {
  const { items, next_cursor: next } = await waitingIn(withAgents(1_200));
  assert.deepEqual([items.length, next], [1_000, '1000']);
});

test('approvals are listed by each of their statuses', async (context) => {
  context.after(() => render(null, document.body));
  aPage();
  render(html`<${Approvals} api=${{ read: async () => ({ items: [], next_cursor: null }) }} slug="acme" role="owner" at=${{ query: {} }} refresh=${() => {}} />`, document.body);
  await settled();
  const links = document.body.all(({ attributes }) => attributes['aria-label'] === 'Status')[0].childNodes;
  const listed = links.map(({ attributes }) => new URLSearchParams(attributes.href.split('?')[1]).get('status'));
  assert.deepEqual(listed, [null, 'pending', 'approved', 'refused', 'expired', 'cancelled']);
});

test('an entry of the audit log that is not listed is said not to be', async (context) => {
  context.after(() => render(null, document.body));
  aPage();
  const api = { read: async () => ({ items: [], next_cursor: null }) };
  const draw = async (query) => (render(html`<${Audit} api=${api} slug="acme" role="owner" at=${{ query }} />`, document.body), settled());
  await draw({});
  assert.match(document.body.textContent, /Choose an entry/);
  await draw({ entry: 'e1' });
  assert.match(document.body.textContent, /This entry is not among the listed ones\./);
});

test('a chart’s numbers do not depend on the browser’s language', (context) => {
  aPage();
  const real = Number.prototype.toLocaleString;
  context.mock.method(Number.prototype, 'toLocaleString', function (language = 'de', options = {}) { return real.call(this, language, options); });
  render(html`<${Chart} widget=${{ kind: 'bar', labels: ['May'], series: [{ name: 'Calls', values: [1234.5] }] }} />`, document.body);
  assert.match(document.body.textContent, /1\.25K.*May, Calls: 1,234\.5.*May1,234\.5$/);
  render(null, document.body);
});

test('a call’s agent and the tool after a call are chosen by name, from those that fit', async (context) => {
  aPage();
  const schemas = readFileSync(new URL('../assets/forms.json', import.meta.url));
  context.mock.method(globalThis, 'fetch', async () => new Response(schemas));
  const asked = [];
  const later = [{ id: 'get', type: 'api_request', config_metadata: { method: 'GET' } }, { id: 'post', type: 'api_request', config_metadata: { method: 'POST' } }, { id: 'read back', type: 'sms', config_metadata: { confirm: { say: 'x' } } }];
  const things = { agents: [{ id: 'a', name: 'Ana', external_assistant_id: 'x' }], tools: ['sms', 'query', 'transfer_call', 'place_call'].map((type) => ({ id: type, label: type, type })).concat(later) };
  const api = { read: async (path) => (asked.push(path), { items: things[path] ?? [], next_cursor: null }) };
  const tool = { id: 'place_call', type: 'place_call', label: 'Call', version: 1, config_metadata: { if_call_over: { tool: 'sms' }, phone_number_id: 'p', to: '+14155550101' } };
  const draw = async (config_metadata) => (render(html`<${Editor} key=${config_metadata} tool=${{ ...tool, config_metadata }} api=${api} slug="acme" role="owner" onSaved=${() => {}} />`, document.body), settled());
  const { if_call_over: _, ...folded } = tool.config_metadata;
  await draw(folded);
  assert.equal(asked.includes('tools'), false, 'tools are read only for their choice');
  await draw(tool.config_metadata);
  const values = (id) => document.body.at(id).all(({ localName }) => localName === 'option').slice(1).map(({ attributes, value }) => attributes.value ?? value);
  assert.deepEqual([values('tool-agent_id'), values('tool-if_call_over-tool')], [['a'], ['sms', 'post']]);
  render(null, document.body);
});
