// The first script, inside the page. It shows the sign-in at once, and fetches the console meanwhile; a signed-in person gets the console
// directly.

import { begin } from './session/begin.js';
import { settings } from './session/issuer.js';
import { forget, kept, LEFT, TOKENS } from './session/kept.js';

const APP = 'console/app.js';
const LIBRARY = 'console/htm-preact.js';
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

/** With the page of the address; ends with the style sheet. */
function fetched() {
  const page = /^#\/[^/]*\/([a-z]+)/.exec(location.hash)?.[1] ?? 'home';
  for (const href of [APP, LIBRARY, APP.replace('app', `${page}-page`)]) link({ rel: 'modulepreload', href });
  return new Promise((come, fail) => link({ rel: 'stylesheet', href: SHEET, onload: come, onerror: () => fail(new Error(SHEET)) }));
}

function link(of) {
  document.head.append(Object.assign(document.createElement('link'), of));
}

function show({ problem = '', everywhere = null }) {
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
if (kept(TOKENS) || /[?&]state=/.test(location.search)) {
  fetched()
    .then(() => import('./app.js'))
    .catch((error) => {
      console.error(error);
      show({ problem: 'The page could not be loaded whole. Check your connection, then load it again.' });
    });
} else {
  const left = kept(LEFT) ?? {};
  forget(LEFT);
  show(left);
  if (left.begin) signIn();
  addEventListener('load', () => fetched().catch(() => {}));
}
