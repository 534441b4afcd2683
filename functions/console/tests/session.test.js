import assert from 'node:assert/strict';
import test, { beforeEach } from 'node:test';

import { begin } from '../assets/session/begin.js';
import { base64url } from '../assets/session/pkce.js';
import { SignInNeeded } from '../assets/shell/problems.js';
import { Session } from '../assets/session/session.js';
import { Unreachable } from '../assets/shell/unreachable.js';

const ISSUER = 'https://issuer.example';
const SETTINGS = { openid_configuration: `${ISSUER}/c`, client_id: 'console', scopes: 'openid' };
const token = (seconds, more = {}) => {
  const claims = { iss: ISSUER, aud: 'console', sub: 'u1', exp: Math.floor(Date.now() / 1000) + seconds, ...more };
  return ['x', base64url(new TextEncoder().encode(JSON.stringify(claims))), 'y'].join('.');
};

let storage;
let issuer;

beforeEach(() => {
  storage = new Map();
  issuer = { forms: [], gives: () => new Response('{}', { status: 400 }) };
  globalThis.sessionStorage = {
    getItem: (name) => storage.get(name) ?? null,
    setItem: (name, value) => storage.set(name, value),
    removeItem: (name) => storage.delete(name),
    clear: () => storage.clear(),
  };
  globalThis.fetch = async (address, { body } = {}) => {
    if (address === SETTINGS.openid_configuration) {
      const found = { issuer: ISSUER, authorization_endpoint: `${ISSUER}/a`, token_endpoint: `${ISSUER}/t`, end_session_endpoint: `${ISSUER}/e` };
      return new Response(JSON.stringify(found));
    }
    issuer.forms.push(Object.fromEntries(body));
    return issuer.gives();
  };
});

const signedIn = (tokens) => {
  storage.set('switchboard.tokens', JSON.stringify(tokens));
  return new Session(SETTINGS);
};
const at = (search) => {
  const replaced = [];
  globalThis.location = { search, pathname: '/', origin: 'https://api.example' };
  globalThis.history = { replaceState: (_state, _title, address) => replaced.push(address) };
  return replaced;
};

test('a token is used while it lasts', async () => {
  const fresh = token(3600);
  assert.equal(await signedIn({ id_token: fresh, refresh_token: 'r' }).token(), fresh);
  assert.deepEqual(issuer.forms, []);
});

test('those who ask at the same time get one renewal, and the newest refresh token is kept', async () => {
  const session = signedIn({ id_token: token(30), refresh_token: 'r1' });
  const newer = token(3600);
  issuer.gives = () => new Response(JSON.stringify({ id_token: newer, refresh_token: 'r2' }));
  assert.deepEqual(await Promise.all([session.token(), session.token(), session.token()]), [newer, newer, newer]);
  assert.deepEqual(issuer.forms, [{ grant_type: 'refresh_token', client_id: 'console', refresh_token: 'r1' }]);
  issuer.gives = () => new Response(JSON.stringify({ id_token: newer }));
  await session.token({ renewed: true });
  await session.token({ renewed: true });
  assert.deepEqual(issuer.forms.slice(1).map((form) => form.refresh_token), ['r2', 'r2']);
});

test('who cannot be renewed must sign in', async () => {
  await assert.rejects(new Session(SETTINGS).token(), SignInNeeded);
  await assert.rejects(signedIn({ id_token: token(-1) }).token(), SignInNeeded);
  await assert.rejects(signedIn({ id_token: token(3600) }).token({ renewed: true }), SignInNeeded);
  await assert.rejects(signedIn({ id_token: token(-1), refresh_token: 'spent' }).token(), SignInNeeded);
  const last = token(30);
  assert.equal(await signedIn({ id_token: last, refresh_token: 'spent' }).token(), last, 'it lasts half a minute yet');
});

test('an issuer that does not answer ends no sign-in', async () => {
  const last = token(30);
  issuer.gives = () => {
    throw new TypeError('network error');
  };
  assert.equal(await signedIn({ id_token: last, refresh_token: 'r' }).token(), last, 'it lasts half a minute yet');
  await assert.rejects(signedIn({ id_token: last, refresh_token: 'r' }).token({ renewed: true }), Unreachable);
  const session = signedIn({ id_token: token(-1), refresh_token: 'r' });
  await assert.rejects(session.token(), Unreachable);
  const newer = token(3600);
  issuer.gives = () => new Response(JSON.stringify({ id_token: newer }));
  assert.equal(await session.token(), newer, 'the refresh token is there');
});

test('a renewal that names somebody else is none', async () => {
  issuer.gives = () => new Response(JSON.stringify({ id_token: token(3600, { sub: 'u2' }) }));
  await assert.rejects(signedIn({ id_token: token(-1), refresh_token: 'r' }).token(), SignInNeeded);
});

test('a code that comes back is redeemed once, and taken out of the address first', async () => {
  const replaced = at('?code=c&state=s');
  const pending = { state: 's', nonce: 'n', verifier: 'v', redirect_uri: 'https://api.example/' };
  storage.set('switchboard.sign-in', JSON.stringify(pending));
  issuer.gives = () => new Response(JSON.stringify({ id_token: token(3600, { nonce: 'n', email: 'ada@x.example' }) }));
  const session = new Session(SETTINGS);
  await session.complete();
  assert.deepEqual([replaced, session.claims.email, storage.has('switchboard.sign-in')], [['/'], 'ada@x.example', false]);
  await assert.rejects(session.complete(), /not begun here/);
  assert.equal(issuer.forms.length, 1);
});

test('signing in returns to the address that was asked for', async () => {
  at('');
  globalThis.location.hash = '#/acme/calls/7?since=x';
  globalThis.location.assign = () => {};
  await begin(SETTINGS);
  const { state, asked } = JSON.parse(storage.get('switchboard.sign-in'));
  assert.equal(asked, '#/acme/calls/7?since=x');
  const replaced = at(`?error=access_denied&state=${state}`);
  await assert.rejects(new Session(SETTINGS).complete(), /refused/);
  assert.deepEqual(replaced, ['/#/acme/calls/7?since=x']);
});

test('a token that answers another sign-in is not kept', async () => {
  at('?code=c&state=s');
  storage.set('switchboard.sign-in', JSON.stringify({ state: 's', nonce: 'n', verifier: 'v', redirect_uri: 'x' }));
  issuer.gives = () => new Response(JSON.stringify({ id_token: token(3600, { nonce: 'other' }) }));
  const session = new Session(SETTINGS);
  await assert.rejects(session.complete(), /answers another sign-in/);
  assert.equal(session.claims, null);
});

test('an address without a sign-in is left alone', async () => {
  const replaced = at('?utm=1');
  await new Session(SETTINGS).complete();
  assert.deepEqual(replaced, []);
});

test('signing out forgets everything here, and says where the issuer signs out', async () => {
  at('');
  const session = signedIn({ id_token: token(3600) });
  storage.set('switchboard.draft', 'x');
  const address = new URL(await session.end());
  assert.deepEqual([storage.size, session.claims, address.pathname], [0, null, '/e']);
});

test('another person who signs in in the tab finds nothing of the first one’s, the same person all of it', async () => {
  const signIn = async (sub) => {
    at('?code=c&state=s');
    storage.set('switchboard.sign-in', JSON.stringify({ state: 's', nonce: 'n', verifier: 'v', redirect_uri: 'x' }));
    issuer.gives = () => new Response(JSON.stringify({ id_token: token(3600, { nonce: 'n', sub }) }));
    const session = new Session(SETTINGS);
    await session.complete();
    return session;
  };
  const drafts = { 'switchboard.unanswered': '{"t":{}}', 'switchboard.form.acme tools': '{}', 'switchboard.draft.acme': 'Hi' };
  const ana = await signIn('ana');
  for (const [name, text] of Object.entries(drafts)) storage.set(name, text);
  const kept = () => Object.keys(drafts).filter((name) => storage.has(name));
  globalThis.location.reload = () => {};
  ana.leave({});
  await signIn('ana');
  assert.deepEqual(kept(), Object.keys(drafts));
  globalThis.location.reload = () => {};
  ana.leave({});
  const bo = await signIn('bo');
  assert.deepEqual([kept(), bo.claims.sub], [[], 'bo']);
});

test('a person whose tokens an earlier version of the page kept finds the drafts again', async () => {
  storage.set('switchboard.draft.acme', 'Hi');
  const session = signedIn({ id_token: token(-1, { sub: 'ana' }) });
  globalThis.location.reload = () => {};
  session.leave({});
  at('?code=c&state=s');
  storage.set('switchboard.sign-in', JSON.stringify({ state: 's', nonce: 'n', verifier: 'v', redirect_uri: 'x' }));
  issuer.gives = () => new Response(JSON.stringify({ id_token: token(3600, { nonce: 'n', sub: 'ana' }) }));
  await new Session(SETTINGS).complete();
  assert.equal(storage.get('switchboard.draft.acme'), 'Hi');
  storage.set('switchboard.person', JSON.stringify('bo'));
  signedIn({ id_token: token(-1, { sub: 'ana' }) });
  assert.equal(storage.get('switchboard.person'), '"bo"', 'the last sign-in counts');
});
