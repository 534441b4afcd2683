import assert from 'node:assert/strict';
import test, { beforeEach } from 'node:test';

import { BEGINNING, Entrance } from '../assets/shell/entrance.js';
import { Refused, SignInNeeded } from '../assets/shell/problems.js';
import { store } from '../assets/shell/store.js';

const kept = new Map();

beforeEach(() => {
  kept.clear();
  globalThis.sessionStorage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, value), removeItem: (name) => kept.delete(name) };
  globalThis.location = { hash: '', pathname: '/' };
  globalThis.history = {
    replaceState: (_state, _title, address) => {
      location.hash = address.includes('#') ? address.slice(address.indexOf('#')) : '';
    },
  };
});

/** Somebody who is a member where `roles` says so, and asks for this address. */
async function entered(hash, roles, { claims = { sub: 'u', email: 'ana@x.example' } } = {}) {
  location.hash = hash;
  const state = store(BEGINNING);
  const membership = async (organization) => {
    const slugs = Object.keys(roles);
    if (organization === 'down') throw new Refused(503, '', 'Down.');
    if (organization && !roles[organization]) throw new Refused(404, 'not_found', 'The organization was not found.');
    if (!organization && slugs.length > 1) throw new Refused(400, '', `Name one in the header X-Organization: ${slugs.join(', ')}.`);
    const slug = organization ?? slugs[0];
    if (!slug) throw new Refused(404, 'not_found', 'The organization was not found.');
    return { slug, role: roles[slug] };
  };
  const asked = [];
  const within = (organization) => ({ membership: () => (asked.push(organization), membership(organization)) });
  const api = { organization: null, membership: () => membership(api.organization), within };
  const left = [];
  const session = { complete: async () => {}, claims, end: async () => 'https://issuer.example/end', leave: (told) => left.push(told) };
  const entrance = new Entrance({ state, session, api });
  await entrance.start();
  await new Promise((turn) => setTimeout(turn));
  return { state, api, entrance, left, asked };
}

test('the only organization is entered, and the address names it', async () => {
  const { state, api } = await entered('', { acme: 'viewer' });
  const { phase, organization, role, person } = state.get();
  assert.deepEqual([phase, organization, role, person, api.organization, location.hash], ['inside', 'acme', 'viewer', 'ana@x.example', 'acme', '#/acme/home']);
});

test('an address leads to its page, row and filter', async () => {
  const { state } = await entered('#/acme/calls/7?execution=e', { acme: 'owner', other: 'viewer' });
  assert.deepEqual([state.get().phase, state.get().organization, location.hash], ['inside', 'acme', '#/acme/calls/7?execution=e']);
});

test('who enters one of several by its address can change to the others, which are asked for once', async () => {
  const { state, entrance, asked } = await entered('#/acme/home', { acme: 'owner', other: 'viewer' });
  assert.deepEqual([state.get().phase, state.get().organization, state.get().organizations], ['inside', 'acme', ['acme', 'other']]);
  await entrance.choose('other');
  assert.deepEqual([state.get().organization, state.get().organizations, asked], ['other', ['acme', 'other'], [null]]);
  kept.clear();
  const only = await entered('#/acme/home', { acme: 'owner' });
  assert.deepEqual([only.state.get().phase, only.state.get().organizations], ['inside', ['acme']]);
});

test('one of several is chosen, and can be changed by the address', async () => {
  const { state, entrance } = await entered('', { acme: 'owner', other: 'viewer' });
  assert.deepEqual([state.get().phase, state.get().organizations], ['choosing', ['acme', 'other']]);
  await entrance.choose('other');
  assert.deepEqual([state.get().organization, state.get().role, location.hash], ['other', 'viewer', '#/other/home']);
  location.hash = '#/acme/runs';
  await entrance.moved();
  assert.deepEqual([state.get().organization, state.get().role], ['acme', 'owner']);
});

test('an address of another organization says so, and leads to one’s own', async () => {
  const { state } = await entered('#/theirs/calls/7', { acme: 'owner' });
  assert.equal(state.get().phase, 'broken');
  assert.match(state.get().notice.text, /organization theirs/);
  await state.get().notice.action.act();
  assert.deepEqual([state.get().phase, location.hash], ['inside', '#/acme/home']);
});

test('the way back from another organization’s address leads in again', async () => {
  const { state, entrance } = await entered('#/theirs/calls', { acme: 'owner' });
  assert.equal(state.get().phase, 'broken');
  location.hash = '#/acme/calls';
  await entrance.moved();
  assert.deepEqual([state.get().phase, state.get().organization, state.get().notice], ['inside', 'acme', null]);
});

test('of quick changes the last one counts, however late the others are answered', async () => {
  const { state, api, entrance } = await entered('#/acme/home', { acme: 'owner', b: 'viewer', c: 'admin' });
  const answers = {};
  api.membership = () => new Promise((come) => { answers[api.organization] = come; });
  const moves = ['b', 'c'].map((slug) => {
    location.hash = `#/${slug}/home`;
    return entrance.moved();
  });
  answers.c({ slug: 'c', role: 'admin' });
  answers.b({ slug: 'b', role: 'viewer' });
  await Promise.all(moves);
  assert.deepEqual([state.get().organization, state.get().role, api.organization], ['c', 'admin', 'c']);
});

test('an API that is down can be asked again, and an expired sign-in leads to signing in', async () => {
  const down = await entered('#/down/home', { acme: 'owner' });
  assert.deepEqual([down.state.get().phase, down.state.get().notice.action.label], ['broken', 'Try again']);
  const nobody = await entered('#/acme/home', { acme: 'owner' }, { claims: null });
  assert.deepEqual(nobody.left, [{}]);
  const { left, api, entrance } = await entered('#/acme/home', { acme: 'owner', b: 'owner' });
  api.membership = async () => Promise.reject(new SignInNeeded());
  location.hash = '#/b/home';
  await entrance.moved();
  assert.match(left[0].problem, /Sign in again/);
});

test('a page that is loaded again is there with the role of the last time, until the API has answered', async () => {
  const first = await entered('#/acme/calls/7', { acme: 'owner' });
  let answer;
  const asked = new Promise((come) => { answer = come; });
  first.api.membership = () => asked;
  const { state } = first;
  state.set(BEGINNING);
  const again = first.entrance.start();
  await new Promise((turn) => setTimeout(turn));
  assert.deepEqual([state.get().phase, state.get().organization, state.get().role], ['inside', 'acme', 'owner']);
  answer({ slug: 'acme', role: 'viewer' });
  await again;
  assert.equal(state.get().role, 'viewer');
  first.api.membership = async () => Promise.reject(new Refused(404, 'not_found', 'The organization was not found.'));
  await first.entrance.start();
  assert.equal(state.get().phase, 'broken');
});

test('signing out forgets the person, and leads to the sign-in', async () => {
  const { state, api, entrance, left } = await entered('#/acme/home', { acme: 'owner' });
  api.forget = () => {};
  await entrance.signOut();
  assert.deepEqual([state.get().person, location.hash, left], [null, '', [{ everywhere: 'https://issuer.example/end' }]]);
});

test('who belongs to no organization is told what to do', async () => {
  const { state } = await entered('', {});
  assert.match(state.get().notice.text, /Ask an owner of yours/);
});

test('no other organization is shown while the requested one is asked for', async () => {
  const { state, api, entrance } = await entered('#/acme/keys', { acme: 'owner', b: 'owner' });
  let answer;
  api.membership = () => new Promise((come) => { answer = come; });
  location.hash = '#/b/keys';
  const moving = entrance.moved();
  assert.equal(state.get().phase, 'starting');
  answer({ slug: 'b', role: 'owner' });
  await moving;
  assert.deepEqual([state.get().phase, state.get().organization], ['inside', 'b']);
});

test('a role that has changed meanwhile holds once the page is looked at, and a failure changes nothing', async () => {
  globalThis.document = { visibilityState: 'visible' };
  const { state, api, entrance } = await entered('#/acme/hooks', { acme: 'member' });
  api.membership = async () => ({ slug: 'acme', role: 'admin' });
  document.visibilityState = 'hidden';
  await entrance.lookedAt();
  assert.equal(state.get().role, 'member');
  document.visibilityState = 'visible';
  await entrance.lookedAt();
  assert.deepEqual([state.get().phase, state.get().role, JSON.parse(kept.get('switchboard.roles')).acme], ['inside', 'admin', 'admin']);
  api.membership = async () => Promise.reject(new Refused(503, '', 'Down.'));
  await entrance.lookedAt();
  assert.deepEqual([state.get().phase, state.get().role], ['inside', 'admin']);
  delete globalThis.document;
});
