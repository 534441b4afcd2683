// The first script in the page, run before the page has come whole. It shows the sign-in at once; for a signed-in person it fetches what the
// console needs beside the page.

import { begin } from './session/begin.js';
import { settings } from './session/issuer.js';
import { forget, kept, LEFT, TOKENS } from './session/kept.js';
import { SCRIPTS } from './scripts.js';

const SHEET = 'console/operator.css';

const at = (id) => document.getElementById(id);

function tell(problem) {
  at('problem').textContent = problem;
  at('problem').hidden = !problem;
}

async function signIn() {
  tell('');
  try {
    await begin(await settings());
  } catch (error) {
    tell(error.message);
  }
}

/** With the place of the address; ends with the style sheet. */
function fetched() {
  const page = /^#\/[^/]*\/([a-z]+)/.exec(location.hash)?.[1] ?? 'home';
  for (const href of SCRIPTS[page] ?? []) link({ rel: 'modulepreload', href });
  return new Promise((come, fail) => link({ rel: 'stylesheet', href: SHEET, onload: come, onerror: () => fail(new Error(SHEET)) }));
}

function link(of) {
  document.head.append(Object.assign(document.createElement('link'), of));
}

export function show({ problem = '', everywhere = null }) {
  document.title = 'Sign in · Switchboard';
  at('app').hidden = true;
  at('sign-in').hidden = false;
  tell(problem);
  at('everywhere').hidden = !everywhere;
  at('sign-out-everywhere').href = everywhere ?? '';
  at('sign-in').addEventListener('click', signIn);
  at('sign-in').focus();
}

// The browser caches them for the next request.
settings().catch(() => {});
/** For a signed-in person, the promise of the style sheet. */
export const entering = kept(TOKENS) || /[?&]state=/.test(location.search) ? fetched() : null;
if (!entering) {
  const left = kept(LEFT) ?? {};
  forget(LEFT);
  show(left);
  if (left.begin) signIn();
  addEventListener('load', () => fetched().catch(() => {}));
}
