import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';
import { View } from '../assets/donotcall/page.js';
import { placeOf } from '../assets/audit/words.js';
import { PLACES } from '../assets/shell/places.js';

const SCHEMAS = readFileSync(new URL('../assets/forms.json', import.meta.url));
const ANA = { id: 'e1', ending: '+…01', source: 'sms', created_at: '2026-11-27T10:00:00Z' };
const FAR = { id: 'e9', ending: '+…09', source: 'newer', created_at: '2026-11-27T10:00:00Z' };

/** The place for this part of the address; `asked` has the requests in their order. */
async function shown(context, at, { role = 'admin', pages = { null: { items: [ANA], next_cursor: null } } } = {}) {
  aPage();
  context.mock.method(globalThis, 'fetch', async () => new Response(SCHEMAS));
  const asked = [];
  const api = {
    read: async (path, { number, cursor = null }) => (asked.push(['GET', path, number]), number ? { items: [], next_cursor: null } : pages[cursor]),
    act: async (...request) => (asked.push(request), ANA),
  };
  const go = async (at) => (render(html`<${View} api=${api} slug="acme" role=${role} at=${{ id: null, query: {}, ...at }} />`, document.body), settled());
  // A view that stays would go on reading.
  context.after(() => render(null, document.body));
  await go(at);
  return { asked, go, of: () => document.body.textContent, press: async (id) => (document.body.at(id).fire('click'), settled()), leave: () => render(null, document.body) };
}

test('a number is looked up as people write it, and one that is not listed can be added', async (context) => {
  const query = { number: '+1 (415) 555-0101' };
  const { asked, of, leave } = await shown(context, { query });
  assert.deepEqual(asked, [['GET', 'do-not-call', '+14155550101']]);
  assert.match(of(), /It is not on the list/);
  leave();
  const form = await shown(context, { id: 'new', query });
  document.body.all(({ localName, attributes }) => localName === 'form' && attributes.class === 'saved')[0].fire('submit');
  await settled();
  assert.deepEqual(form.asked.at(-1), ['POST', 'do-not-call', { phone_number: '+14155550101' }]);
  assert.match(location.hash, /^#\/acme\/donotcall\/e1/);
});

test('the form has the number that was looked up, and not one that was typed for an earlier one', async (context) => {
  const at = (number) => ({ id: 'new', query: { number } });
  const { go } = await shown(context, at('+14155550101'));
  const field = () => document.body.at('donotcall-phone_number');
  field().fire('input', { value: '+14155550102' });
  await settled();
  await go(at('+14155550103'));
  assert.equal(field().attributes.value ?? field().value, '+14155550103');
  await go(at('+14155550101'));
  assert.equal(field().attributes.value ?? field().value, '+14155550102');
});

test('an entry says why it is there, and an admin takes it off after a question', async (context) => {
  const { asked, of, press, leave } = await shown(context, { id: 'e1' });
  assert.match(of(), /\+…01.*The person texted STOP/s);
  await press('unlist');
  assert.match(of(), /tools may call this person again/);
  await press('unlist-yes');
  assert.deepEqual([asked.at(-1), location.hash], [['DELETE', 'do-not-call/e1'], '#/acme/donotcall']);
  leave();
  const member = await shown(context, { id: 'e1' }, { role: 'member' });
  assert.equal(document.body.at('unlist').attributes['aria-disabled'], 'true');
  assert.match(member.of(), /This needs the role admin/);
});

test('an entry of the audit log leads to its entry, also on a later page of the list', async (context) => {
  const page = placeOf({ noun: 'do_not_call', action: 'created', of: 'e9' });
  assert.ok(PLACES.some((place) => place.page === page));
  const { of } = await shown(context, { id: 'e9' }, { pages: { null: { items: [ANA], next_cursor: '2' }, 2: { items: [FAR], next_cursor: null } } });
  assert.match(of(), /\+…09.*It was listed in another way/s);
});
