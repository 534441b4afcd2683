// OpenID Connect after a sign-in: codes, tokens, the session's end.

import { lost, SignInFailed } from './issuer.js';
import { answerTo } from '../shell/unreachable.js';

/** From an address; null without one. `pending` comes from `begin`. */
export function codeIn(search, pending, found) {
  const given = new URLSearchParams(search);
  if (!given.has('state') || !(given.has('code') || given.has('error'))) return null;
  if (!pending || given.get('state') !== pending.state) {
    throw new SignInFailed('This sign-in was not begun here, or was ended before. Sign in again.');
  }
  if (given.has('iss') && given.get('iss') !== found.issuer) {
    throw new SignInFailed('Another sign-in service answered than the one that was asked. Sign in again.');
  }
  if (given.has('error')) {
    const why = given.get('error_description') ?? given.get('error');
    throw new SignInFailed(`The sign-in service refused: ${why}. Sign in again.`);
  }
  return given.get('code');
}

/** `{id_token, refresh_token?}`. */
export async function redeem(found, { client_id, code, pending }, ask = answerTo) {
  const { verifier, redirect_uri } = pending;
  return tokens(found, { grant_type: 'authorization_code', client_id, code, redirect_uri, code_verifier: verifier }, ask);
}

/** Without a new refresh token, the old one stays. */
export async function refresh(found, { client_id, refresh_token }, ask = answerTo) {
  const given = await tokens(found, { grant_type: 'refresh_token', client_id, refresh_token }, ask);
  return { ...given, refresh_token: given.refresh_token ?? refresh_token };
}

async function tokens(found, form, ask) {
  // A form needs no preflight.
  const answer = await ask(found.token_endpoint, { method: 'POST', body: new URLSearchParams(form) }).catch(lost);
  if (answer.status === 429 || answer.status >= 500) lost();
  const given = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const why = given.error_description ?? given.error ?? `status ${answer.status}`;
    throw new SignInFailed(`The sign-in service gave no token: ${why}. Sign in again.`);
  }
  if (typeof given.id_token !== 'string') {
    throw new SignInFailed('The sign-in service gave no id token; its scope openid is needed. Tell whoever runs this console.');
  }
  return given;
}

/**
 * The person's claims in an id token. It came from the issuer over TLS, which stands for its signature (OpenID Connect Core,
 * 3.1.3.7); the API verifies that. `subject` and `nonce` are checked if known.
 */
export function claimsOf(token, { issuer, client_id, nonce, subject, now = Date.now() }) {
  const claims = unverified(token);
  const audience = [claims?.aud].flat();
  const wrong = [
    [claims?.iss !== issuer, 'is of another issuer'],
    [!audience.includes(client_id), 'is for another client'],
    [audience.length > 1 && claims.azp !== client_id, 'is for several clients'],
    [!(claims?.exp * 1000 > now), 'has expired; check the clock of this device'],
    [nonce !== undefined && claims?.nonce !== nonce, 'answers another sign-in'],
    [typeof claims?.sub !== 'string', 'names nobody'],
    [subject !== undefined && claims?.sub !== subject, 'is somebody else’s'],
  ].find(([is]) => is);
  if (wrong) throw new SignInFailed(`The sign-in service's token ${wrong[1]}. Sign in again.`);
  return claims;
}

/** Null if it is no token. */
export function unverified(token) {
  try {
    const part = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
    const bytes = Uint8Array.from(atob(part), (letter) => letter.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

/** The issuer's sign-out address, or null. Both names of the way back are sent: Cognito has its own. */
export function endOfSession(found, { client_id, id_token, back }) {
  if (typeof found?.end_session_endpoint !== 'string') return null;
  const address = new URL(found.end_session_endpoint);
  const parameters = { client_id, id_token_hint: id_token, post_logout_redirect_uri: back, logout_uri: back };
  for (const [name, value] of Object.entries(parameters)) if (value) address.searchParams.set(name, value);
  return address.href;
}
