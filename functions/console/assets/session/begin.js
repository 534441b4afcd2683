// Begins a sign-in: authorization code with PKCE, without a client secret.

import { discover } from './issuer.js';
import { keep, PENDING } from './kept.js';
import { challenge, secretText } from './pkce.js';

/** The issuer's configuration is kept for the return. */
export async function begin(settings) {
  const found = await discover(settings.openid_configuration);
  const { address, pending } = await signInAt(found, { ...settings, redirect_uri: location.origin + location.pathname });
  keep(PENDING, { ...pending, found, asked: location.hash });
  location.assign(address);
}

/** With the state to keep until the return: `{address, pending}`. */
export async function signInAt(found, { client_id, scopes, redirect_uri }) {
  const pending = { state: secretText(), nonce: secretText(), verifier: secretText(), redirect_uri };
  const address = new URL(found.authorization_endpoint);
  const parameters = {
    response_type: 'code',
    client_id,
    redirect_uri,
    scope: scopes,
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: await challenge(pending.verifier),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
  return { address: address.href, pending };
}
