// The first script in the page, run before the page has come whole. It shows the sign-in at once; for a signed-in person it fetches what the
// console needs beside the page.

import { begin } from './session/begin.js';
import { settings } from './session/issuer.js';
import { forget, kept, LEFT, TOKENS } from './session/kept.js';
import { SCRIPTS } from './scripts.js';
import { sheet } from './shell/sheet.js';

const SHEET = 'console/operator.css';
const PLACES = 'console/places.css';

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

/** Home, or the place of the address; ends with the style sheets. */
function fetched() {
  const page = /^#\/[^/]*\/([a-z]+)/.exec(location.hash)?.[1];
  const scripts = SCRIPTS[page] ?? [];
  for (const href of scripts) document.head.append(Object.assign(document.createElement('link'), { rel: 'modulepreload', href }));
  return Promise.all([SHEET, ...(scripts.length > 0 ? [PLACES] : [])].map(sheet));
}

export function show({ problem = '', everywhere = null }) {
  document.title = 'Sign in · Switchboard';
  at('app').hidden = true;
  at('sign-in-page').hidden = false;
  tell(problem);
  at('everywhere').hidden = !everywhere;
  at('sign-out-everywhere').href = everywhere ?? '';
  at('sign-in').addEventListener('click', signIn);
  at('sign-in').focus();
}

// The browser caches them for the next request.
settings().catch(() => {});
/** For a signed-in person, the promise of the style sheets. */
export const entering = kept(TOKENS) || /[?&]state=/.test(location.search) ? fetched() : null;
if (!entering) {
  const left = kept(LEFT) ?? {};
  forget(LEFT);
  show(left);
  if (left.begin) signIn();
  addEventListener('load', () => fetched().catch(() => {}));
}
