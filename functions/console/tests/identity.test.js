import assert from 'node:assert/strict';
import test from 'node:test';

import { signInAt } from '../assets/session/begin.js';
import { claimsOf, codeIn, endOfSession, redeem, refresh, unverified } from '../assets/session/identity.js';
import { discover, SignInFailed } from '../assets/session/issuer.js';
import { base64url, challenge, secretText } from '../assets/session/pkce.js';
import { Unreachable } from '../assets/shell/unreachable.js';

const FOUND = {
  issuer: 'https://issuer.example/pool',
  authorization_endpoint: 'https://login.example/authorize?tenant=1',
  token_endpoint: 'https://login.example/token',
};
const SETTINGS = { client_id: 'console', scopes: 'openid email', redirect_uri: 'https://api.example/' };
const NOW = 1_795_000_000_000;

const token = (claims) => ['x', base64url(new TextEncoder().encode(JSON.stringify(claims))), 'y'].join('.');
const CLAIMS = { iss: FOUND.issuer, aud: 'console', sub: 'u1', nonce: 'n', exp: NOW / 1000 + 60, name: 'Zoë 日本' };
const EXPECTED = { issuer: FOUND.issuer, client_id: 'console', nonce: 'n', now: NOW };

test('a challenge is what RFC 7636, appendix B, says', async () => {
  assert.equal(await challenge('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'), 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
  assert.match(secretText(), /^[A-Za-z0-9_-]{43}$/);
  assert.notEqual(secretText(), secretText());
});

test('a sign-in begins with all that its end is held against', async () => {
  const { address, pending } = await signInAt(FOUND, SETTINGS);
  const asked = new URL(address);
  assert.equal(asked.origin + asked.pathname, 'https://login.example/authorize');
  assert.deepEqual(Object.fromEntries(asked.searchParams), {
    tenant: '1', response_type: 'code', client_id: 'console', redirect_uri: 'https://api.example/', scope: 'openid email',
    state: pending.state, nonce: pending.nonce, code_challenge: await challenge(pending.verifier), code_challenge_method: 'S256',
  });
  assert.equal(new Set([pending.state, pending.nonce, pending.verifier]).size, 3);
});

test('a code is taken from whoever was asked for it, and from nobody else', () => {
  const pending = { state: 's' };
  assert.equal(codeIn('?code=c&state=s', pending, FOUND), 'c');
  assert.equal(codeIn(`?code=c&state=s&iss=${encodeURIComponent(FOUND.issuer)}`, pending, FOUND), 'c');
  for (const nothing of ['', '?code=c', '?state=s', '?utm=x']) assert.equal(codeIn(nothing, pending, FOUND), null);
  for (const [search, of] of [
    ['?code=c&state=other', pending],
    ['?code=c&state=s', null],
    ['?code=c&state=s&iss=https://evil.example', pending],
    ['?error=access_denied&error_description=Not+you&state=s', pending],
  ]) {
    assert.throws(() => codeIn(search, of, FOUND), SignInFailed, search);
  }
});

test('an id token is the right one, or it is none', () => {
  assert.equal(claimsOf(token(CLAIMS), EXPECTED).name, 'Zoë 日本');
  claimsOf(token({ ...CLAIMS, aud: ['console'] }), EXPECTED);
  claimsOf(token({ ...CLAIMS, aud: ['console', 'api'], azp: 'console' }), EXPECTED);
  claimsOf(token({ ...CLAIMS, nonce: undefined }), { ...EXPECTED, nonce: undefined, subject: 'u1' });
  for (const wrong of [
    { iss: 'https://issuer.example' },
    { iss: undefined },
    { aud: 'another' },
    { aud: undefined },
    { aud: ['console', 'api'] },
    { aud: ['console', 'api'], azp: 'api' },
    { exp: NOW / 1000 },
    { exp: undefined },
    { nonce: 'other' },
    { nonce: undefined },
    { sub: undefined },
  ]) {
    assert.throws(() => claimsOf(token({ ...CLAIMS, ...wrong }), EXPECTED), SignInFailed, JSON.stringify(wrong));
  }
  assert.throws(() => claimsOf(token(CLAIMS), { ...EXPECTED, subject: 'u2' }), SignInFailed);
  for (const none of ['', 'x', 'a.b.c', undefined]) {
    assert.equal(unverified(none), null);
    assert.throws(() => claimsOf(none, EXPECTED), SignInFailed);
  }
});

/** An issuer with this answer, and its requests. */
function issuer(status, body) {
  const asked = [];
  const ask = async (address, { body: form } = {}) => {
    asked.push([address, form && Object.fromEntries(form)]);
    return new Response(typeof body === 'string' ? body : JSON.stringify(body), { status });
  };
  return { ask, asked };
}

test('a code becomes tokens, with the verifier and without a secret', async () => {
  const { ask, asked } = issuer(200, { id_token: 'i', access_token: 'a', refresh_token: 'r' });
  const pending = { verifier: 'v', redirect_uri: 'https://api.example/' };
  assert.equal((await redeem(FOUND, { client_id: 'console', code: 'c', pending }, ask)).id_token, 'i');
  const form = { grant_type: 'authorization_code', client_id: 'console', code: 'c', redirect_uri: pending.redirect_uri, code_verifier: 'v' };
  assert.deepEqual(asked, [[FOUND.token_endpoint, form]]);
});

test('the newest refresh token is kept', async () => {
  const old = { client_id: 'console', refresh_token: 'old' };
  assert.equal((await refresh(FOUND, old, issuer(200, { id_token: 'i', refresh_token: 'new' }).ask)).refresh_token, 'new');
  assert.equal((await refresh(FOUND, old, issuer(200, { id_token: 'i' }).ask)).refresh_token, 'old');
});

test('what an issuer refuses is a sentence', async () => {
  const pending = { verifier: 'v', redirect_uri: 'x' };
  for (const [status, body, expected] of [
    [400, { error: 'invalid_grant', error_description: 'code was used' }, /code was used/],
    [400, { error: 'invalid_grant' }, /invalid_grant/],
    [404, '<html>', /status 404/],
    [200, { access_token: 'a' }, /openid/],
  ]) {
    const { ask } = issuer(status, body);
    await assert.rejects(redeem(FOUND, { client_id: 'console', code: 'c', pending }, ask), expected);
  }
  const away = async () => {
    throw new TypeError('network error');
  };
  for (const ask of [away, issuer(502, '<html>').ask, issuer(429, { error: 'slow_down' }).ask]) {
    await assert.rejects(redeem(FOUND, { client_id: 'console', code: 'c', pending }, ask), Unreachable);
    await assert.rejects(discover('https://issuer.example/x', ask), Unreachable);
  }
});

test('a configuration without what is needed is refused by name', async () => {
  assert.deepEqual(await discover('https://issuer.example/x', issuer(200, FOUND).ask), FOUND);
  for (const name of Object.keys(FOUND)) {
    const lacking = { ...FOUND, [name]: undefined };
    await assert.rejects(discover('https://issuer.example/x', issuer(200, lacking).ask), new RegExp(name));
  }
  await assert.rejects(discover('https://issuer.example/x', issuer(404, '').ask), Unreachable);
});

test('the issuer ends its session where it says so', () => {
  assert.equal(endOfSession(FOUND, { client_id: 'console', back: 'https://api.example/' }), null);
  assert.equal(endOfSession(null, { client_id: 'console', back: 'https://api.example/' }), null);
  const found = { ...FOUND, end_session_endpoint: 'https://login.example/logout' };
  const address = new URL(endOfSession(found, { client_id: 'console', id_token: 'i', back: 'https://api.example/' }));
  assert.deepEqual(Object.fromEntries(address.searchParams), {
    client_id: 'console', id_token_hint: 'i', post_logout_redirect_uri: 'https://api.example/', logout_uri: 'https://api.example/',
  });
});
