// The issuer's configuration.

/** Signing in failed for a reason that a person, or whoever runs the console, can do something about. */
export class SignInFailed extends Error {}

/** The issuer's configuration: its addresses, and the name that it gives itself in tokens. */
export async function discover(address, ask = fetch) {
  const answer = await ask(address).catch(() => null);
  if (!answer?.ok) throw new SignInFailed('The sign-in service cannot be reached. Try again in a moment.');
  const found = await answer.json().catch(() => null);
  for (const name of ['issuer', 'authorization_endpoint', 'token_endpoint']) {
    if (typeof found?.[name] !== 'string') {
      throw new SignInFailed(`The sign-in service's configuration names no ${name}. Tell whoever runs this console.`);
    }
  }
  return found;
}

/** Where to sign in and where answers stream from, as the deployment says. */
export async function settings(ask = fetch) {
  const answer = await ask('console/settings.json').catch(() => null);
  if (!answer?.ok) throw new SignInFailed('The page could not be loaded whole. Check your connection, then load it again.');
  return answer.json();
}
