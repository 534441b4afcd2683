import assert from 'node:assert/strict';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';
import { waitingIn } from '../assets/approvals/asked.js';
import { Attachments, useChoices } from '../assets/shell/attachments.js';
import { Filters } from '../assets/shell/filter_form.js';
import { useNames } from '../assets/shell/filtered.js';
import { Form } from '../assets/shell/form.js';

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
