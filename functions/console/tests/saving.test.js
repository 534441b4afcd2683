import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';
import { View as Hooks } from '../assets/hooks/page.js';
import { View as Keys } from '../assets/keys/page.js';
import { View as Members } from '../assets/members/page.js';
import { View as Numbers } from '../assets/numbers/page.js';
import { SavedForm } from '../assets/shell/saving.js';

const SCHEMAS = readFileSync(new URL('../assets/forms.json', import.meta.url));

/** The view in a page: `type` and `save` are a person's acts, `save` gives whether the button keeps the focus; `says` is the form's status. */
async function shown(context, view) {
  const kept = aPage();
  context.mock.method(globalThis, 'fetch', async () => new Response(SCHEMAS));
  context.after(() => render(null, document.body));
  const draw = async (of) => (render(of, document.body), settled());
  await draw(view);
  const form = () => document.body.all(({ attributes }) => attributes.class === 'saved')[0];
  return {
    kept,
    draw,
    type: async (id, value) => (document.body.at(id).fire('input', { value }), settled()),
    save: async () => {
      const button = form().all(({ attributes }) => 'data-save' in attributes)[0];
      button.focus();
      form().fire('submit');
      await settled();
      return document.activeElement === button;
    },
    says: () => form().all(({ attributes }) => attributes.role === 'status')[0].textContent,
    warns: () => form().all(({ attributes }) => 'data-kept' in attributes).map(({ textContent }) => textContent),
    value: (id) => document.body.at(id).attributes.value ?? '',
    problem: (id) => document.body.at(`${id}-problems`)?.textContent ?? null,
  };
}

test('a saved number, hook or key says so, and the focus stays', async (context) => {
  const number = { id: 'p', number: '+14155550101', label: 'Shop', agent_id: null, fallback_number: null, fallback_sentence: null, language: null, vapi_phone_number_id: null, wait_ms: 0, updated_at: '2026-11-27T10:00:00Z' };
  const hook = { id: 'h', service: 'Stripe', label: 'Shop', status: 'active', url: 'https://x', set_up: '', secrets: [], created_at: number.updated_at, updated_at: number.updated_at };
  const key = { service: 'vapi', own: false, updated_at: null, verify_claims: false };
  for (const [View, stored, id, path, secret] of [[Numbers, number, 'number-label', 'phone-numbers/p', null], [Hooks, hook, 'hook-label', 'hooks/h', 'hook-secret'], [Keys, key, 'vapi-api_key', 'keys', 'vapi-api_key']]) {
    let item = stored;
    const read = async (asked) => (asked === path && path !== 'keys' ? item : { items: path === 'keys' ? [item] : [], next_cursor: null });
    const api = { read, act: async (_, __, body) => { item = { ...item, ...(body.label && { label: body.label }), own: true, updated_at: '2026-11-27T11:00:00Z' }; } };
    const page = await shown(context, html`<${View} key=${path} api=${api} slug="acme" role="owner" at=${{ id: stored.id, query: {} }} />`);
    if (secret) await page.type(secret, 'whsec_1');
    await page.type(id, 'Shop 2');
    const stays = await page.save();
    assert.deepEqual([page.says(), stays, page.warns()], ['Saved.', true, []], path);
    if (secret) assert.equal(page.value(secret), '', 'a secret is not shown again');
    if (id !== secret) assert.equal(page.value(id), 'Shop 2');
    await page.type(id, 'Shop 3');
    assert.deepEqual([page.says(), page.warns()], ['Not saved yet. It is kept in this tab.', []], path);
    render(null, document.body);
  }
});

test('changes are made to the version that somebody else saved while the form is open', async (context) => {
  const schema = { properties: { label: { type: 'string' }, text: { type: 'string' } }, required: ['label', 'text'] };
  const sent = [];
  const form = (since, base) => html`<${SavedForm} of="x" since=${since} name="x" schema=${schema} begin=${() => base} send=${async (value) => sent.push(value)} />`;
  const { draw, type, save, warns, value, kept } = await shown(context, form('1', { label: 'A', text: 'B' }));
  await type('x-label', 'C');
  await draw(form('2', { label: 'A', text: 'D' }));
  assert.deepEqual([value('x-label'), value('x-text')], ['C', 'D']);
  assert.match(warns()[0], /Somebody saved another version meanwhile/);
  assert.equal(JSON.parse(kept['switchboard.form.x']).since, '2');
  await save();
  assert.deepEqual([sent, kept['switchboard.form.x'], warns()], [[{ label: 'C', text: 'D' }], undefined, []]);
  render(null, document.body);
});

test('a draft keeps no value that its schema marks as only written', async (context) => {
  const schema = { properties: { secret_key: { type: 'string', writeOnly: true }, account: { type: 'string' }, twilio: { $ref: '#/TwilioAccount' } }, required: ['secret_key', 'account', 'twilio'] };
  const { type, kept } = await shown(context, html`<${SavedForm} of="x" name="x" schema=${schema} send=${() => {}} />`);
  await type('x-secret_key', 'sk_live_1');
  await type('x-account', 'acct_1');
  await type('x-twilio-api_key_secret', 'hidden');
  const { value } = JSON.parse(kept['switchboard.form.x']);
  assert.deepEqual(value, { secret_key: '', account: 'acct_1', twilio: { api_key_secret: '' } });
  render(null, document.body);
});

test('secrets that are called as parts of a draft leave the rest of it', async (context) => {
  const schema = { properties: { value: { type: 'string', writeOnly: true }, base: { type: 'string', writeOnly: true }, account: { type: 'string' } }, required: ['value', 'base', 'account'] };
  const { type, kept } = await shown(context, html`<${SavedForm} of="x" since="1" name="x" schema=${schema} begin=${() => ({ account: 'A' })} send=${() => {}} />`);
  await type('x-value', 'sk_live_1');
  await type('x-base', 'sk_live_2');
  await type('x-account', 'B');
  assert.deepEqual(JSON.parse(kept['switchboard.form.x']), { since: '1', value: { value: '', base: '', account: 'B' }, base: { account: 'A' } });
  render(null, document.body);
});

test('text typed right after "Saved." names somebody else’s version, and not the own one', async (context) => {
  const schema = { properties: { label: { type: 'string' }, pin: { type: 'string' } }, required: ['label'] };
  const form = (since, base) => html`<${SavedForm} of="x" since=${since} name="x" schema=${schema} begin=${() => base} send=${async () => ({ updated_at: '2' })} />`;
  // What the service spells otherwise, or never shows, is the person's all the same.
  for (const [since, next, named] of [['2', { label: 'c' }, 0], ['3', { label: 'C', pin: '[secret]' }, 1]]) {
    const { draw, type, save, warns, value, kept } = await shown(context, form('1', { label: 'A', pin: '[secret]' }));
    await type('x-label', 'C');
    await type('x-pin', '1234');
    await save();
    await type('x-label', 'CD');
    assert.deepEqual(JSON.parse(kept['switchboard.form.x']).base, { label: 'C', pin: '' });
    await draw(form(since, next));
    assert.deepEqual([value('x-label'), warns().length], ['CD', named]);
    if (named) assert.match(warns()[0], /Somebody saved another version meanwhile/);
    render(null, document.body);
  }
});

const STORED = '2026-11-27T10:00:00Z';

test('a replaced key begins with its stored settings, all of them in sight', async (context) => {
  const settings = { base_url: 'https://llm.example.com/v1', model: 'small', scope: 'chat', verify_claims: true };
  for (const [more, secret] of [[{}, { api_key: 'sk-2' }], [{ token_url: 'https://id.example.com/token' }, { client_id: 'us', client_secret: 's' }]]) {
    const { scope, ...ofKey } = settings;
    const known = { ...(more.token_url ? settings : ofKey), ...more };
    const item = { service: 'llm', own: true, updated_at: STORED, of_a_newer_version: 1, ...known };
    const sent = [];
    const api = { read: async () => ({ items: [item] }), act: async (...all) => sent.push(all) };
    const page = await shown(context, html`<${Keys} key=${secret.client_id} api=${api} slug="acme" role="owner" />`);
    assert.match(document.body.textContent, /a field that is empty here is gone/);
    assert.deepEqual(document.body.all(({ attributes }) => attributes.class === 'further'), []);
    for (const [name, value] of Object.entries(secret)) await page.type(`llm-key-${name}`, value);
    await page.save();
    assert.deepEqual(sent, [['PUT', 'keys/llm', { ...known, ...secret }]]);
    render(null, document.body);
  }
});

test('a stored OAuth client stays one while its token URL is empty', async (context) => {
  const item = { service: 'llm', own: true, updated_at: STORED, base_url: 'https://llm.example.com/v1', token_url: 'https://id.example.com/token' };
  const page = await shown(context, html`<${Keys} api=${{ read: async () => ({ items: [item] }) }} slug="acme" role="owner" />`);
  await page.type('llm-key-token_url', '');
  assert.deepEqual(['client_id', 'token_url', 'api_key'].map((name) => document.body.at(`llm-key-${name}`) !== null), [true, true, false]);
});

test('a key for VAPI drops a bearer token that is or may be stored only if the person says so', async (context) => {
  for (const [bears, asks] of [[true, true], [undefined, true], [false, false]]) {
    const sent = [];
    const item = { service: 'vapi', own: true, updated_at: STORED, verify_claims: false, has_webhook_bearer: bears };
    const api = { read: async () => ({ items: [item] }), act: async (...all) => sent.push(all) };
    const page = await shown(context, html`<${Keys} key=${bears} api=${api} slug="acme" role="owner" />`);
    await page.type('vapi-api_key', 'k');
    await page.save();
    assert.equal(sent.length, asks ? 0 : 1, bears);
    assert.equal(document.body.at('vapi-bearer_dropped') !== null, asks);
    if (asks) {
      assert.match(page.problem('vapi-webhook_bearer'), /Enter the stored bearer token again/);
      document.body.at('vapi-bearer_dropped').fire('change', { checked: true });
      await settled();
      await page.save();
      await page.type('vapi-webhook_bearer', 'b');
      await page.save();
      assert.deepEqual(sent.map(([, , body]) => body), [{ api_key: 'k' }, { api_key: 'k', webhook_bearer: 'b' }]);
    }
    render(null, document.body);
  }
});

test('a hook of a program of one’s own is made under any name, and the services are suggested', async (context) => {
  const sent = [];
  const read = async (path) => ({ items: path === 'services' ? [{ name: 'Stripe' }, { name: 'Oura', supports_webhooks: false }] : [], next_cursor: null });
  const api = { read, act: async (...all) => (sent.push(all), { id: 'h' }) };
  const page = await shown(context, html`<${Hooks} api=${api} slug="acme" role="owner" at=${{ id: 'new', query: {} }} />`);
  assert.equal(document.body.at('hooks-service').attributes.list, 'hooks-service-list');
  assert.deepEqual(document.body.at('hooks-service-list').childNodes.map(({ attributes }) => attributes.value), ['Stripe']);
  await page.type('hooks-service', 'acme');
  await page.type('hooks-header', 'X-Acme-Signature');
  document.body.at('hooks-scheme').fire('change', { value: 'hmac' });
  await settled();
  await page.save();
  assert.deepEqual(sent, [['POST', 'hooks', { service: 'acme', header: 'X-Acme-Signature', scheme: 'hmac' }]]);
});

test('a hook shows its name for triggers, how requests are proven, its danger and the refused requests', async (context) => {
  const hook = { id: 'h', service: 'own.acme', hook: 'acme', scheme: 'none', settings: { algorithm: 'sha256', allowed_addresses: ['203.0.113.0/24'], event_field: 'topic' }, warning: 'Requests are not signed.', throttled: 7, throttled_at: STORED, label: '', status: 'active', url: 'https://x', set_up: '', secrets: [], created_at: STORED, updated_at: STORED };
  const read = async (path) => (path === 'hooks/h' ? hook : { items: [], next_cursor: null });
  await shown(context, html`<${Hooks} api=${{ read }} slug="acme" role="owner" at=${{ id: 'h', query: {} }} />`);
  const text = document.body.textContent;
  for (const said of [/\{"hook":"acme"\}/, /scheme.*none.*allowed_addresses.*203\.0\.113\.0\/24.*event_field.*topic/, /Requests are not signed\./, /7 requests were refused/]) assert.match(text, said);
  assert.equal(document.body.all(({ attributes }) => attributes.class === 'say wait').length, 2);
});

test('a hook shows only the settings of its scheme, and offers secrets only where its scheme has them', async (context) => {
  const settings = { algorithm: 'sha256', encoding: 'hex', event_field: 'topic' };
  for (const [scheme, signs, secret] of [['hmac', true, true], ['bearer', false, true], ['none', false, false], ['google_pubsub', false, false]]) {
    const hook = { id: 'h', service: 'own.acme', scheme, settings, label: '', status: 'active', url: 'https://x', set_up: '', secrets: [{ id: 's', created_at: STORED }], created_at: STORED, updated_at: STORED };
    const read = async (path) => (path === 'hooks/h' ? hook : { items: [], next_cursor: null });
    await shown(context, html`<${Hooks} key=${scheme} api=${{ read }} slug="acme" role="owner" at=${{ id: 'h', query: {} }} />`);
    const text = document.body.textContent;
    assert.match(text, /event_field.*topic/);
    assert.deepEqual([/sha256/.test(text), /encoding/.test(text)], [signs, signs], scheme);
    assert.deepEqual([/Secrets/.test(text), document.body.at('rotate') !== null, document.body.at('hook-secret') !== null], [secret, secret, secret], scheme);
    render(null, document.body);
  }
});

test('a member who is not among the listed ones is shown, and the contact is changed', async (context) => {
  const member = (place) => ({ user_id: `auth0|${place}`, role: 'member', name: `Member ${place}`, email: 'a@acme.example', phone: null, timezone: null, created_at: STORED, updated_at: STORED });
  let last = member(60);
  const sent = [];
  const read = async (path) => (path === 'members' ? { items: Array.from({ length: 50 }, (_, place) => member(place)), next_cursor: 'next' } : path === 'members/auth0%7C60' ? last : null);
  const act = async (method, path, change) => (sent.push([method, path, change]), last = { ...last, ...change, updated_at: '2026-11-27T11:00:00Z' });
  for (const role of ['owner', 'admin']) {
    const page = await shown(context, html`<${Members} key=${role} api=${{ read, act }} slug="acme" role=${role} at=${{ id: 'auth0|60', query: {} }} />`);
    assert.equal(page.value('member-name'), last.name);
    if (role === 'owner') {
      await page.type('member-phone', '+14155550101');
      await page.type('member-email', '');
      assert.equal(await page.save(), true);
      assert.deepEqual(sent, [['PATCH', 'members/auth0%7C60', { email: null, phone: '+14155550101' }]]);
      assert.deepEqual([page.says(), page.value('member-phone')], ['Saved.', '+14155550101']);
      last = { ...last, role: 'owner' };
    } else {
      assert.equal(document.body.at('member-name').attributes.disabled, 'true', 'only owners change owners');
    }
    render(null, document.body);
  }
});

/** A member who is `listed`, or whom only their own route gives; it answers once. */
async function aMember(context, listed) {
  let far = { user_id: 'u60', role: 'member', name: 'Ana', email: 'a@acme.example', created_at: STORED, updated_at: STORED };
  let [reads, acts] = [0, 0];
  const read = (path) => (path === 'members' ? Promise.resolve({ items: listed ? [far] : [], next_cursor: 'next' }) : (reads += 1) > 1 ? new Promise(() => {}) : Promise.resolve(far));
  const act = async (_, __, change) => (far = { ...far, ...change, updated_at: `2026-11-27T11:00:0${(acts += 1)}Z` });
  const page = await shown(context, html`<${Members} api=${{ read, act }} slug="acme" role="owner" at=${{ id: 'u60', query: {} }} />`);
  const saveRole = async () => {
    document.body.at('member-role').fire('change', { value: 'admin' });
    await settled();
    document.body.at('member-save').fire('click');
    await settled();
  };
  return { ...page, saveRole };
}

test('the saved role of a member who is not listed is shown without another reading', async (context) => {
  const { saveRole, value } = await aMember(context, false);
  await saveRole();
  assert.equal(value('member-role'), 'admin');
  assert.match(document.body.at('member-says').textContent, /^Saved\./);
  assert.equal(value('member-name'), 'Ana');
});

test('neither a saved role nor the own saving is another version of a contact', async (context) => {
  for (const listed of [true, false]) {
    const { saveRole, type, save, warns, value } = await aMember(context, listed);
    await type('member-name', 'Ana B');
    await saveRole();
    assert.deepEqual([warns(), value('member-name')], [[], 'Ana B']);
    await save();
    await type('member-name', 'Ana C');
    assert.deepEqual(warns(), []);
    render(null, document.body);
  }
});
