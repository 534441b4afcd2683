// The issuer's configuration.

import { answerTo, Unreachable } from '../shell/unreachable.js';

/** A failure that a person or an operator of the console can repair. */
export class SignInFailed extends Error {}

/** No answer, or that of a broken server, refuses nothing. */
export function lost(cause) {
  throw new Unreachable(cause);
}

/** Its addresses, and its name in tokens. */
export async function discover(address, ask = answerTo) {
  const answer = await ask(address).catch(lost);
  if (!answer.ok) lost();
  const found = await answer.json().catch(() => null);
  for (const name of ['issuer', 'authorization_endpoint', 'token_endpoint']) {
    if (typeof found?.[name] !== 'string') {
      throw new SignInFailed(`The sign-in service's configuration names no ${name}. Tell whoever runs this console.`);
    }
  }
  return found;
}

/** Of the deployment: where to sign in and where answers stream from. */
export async function settings(ask = answerTo) {
  const answer = await ask('console/settings.json').catch(() => null);
  if (!answer?.ok) throw new SignInFailed('The page could not be loaded whole. Check your connection, then load it again.');
  return answer.json();
}
