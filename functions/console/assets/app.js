// The start of a signed-in person's console: settings, the parts, and the view of their state.

import { Api } from './shell/api.js';
import { BEGINNING, Entrance } from './shell/entrance.js';
import { html, render } from './htm-preact.js';
import { Page } from './shell/page.js';
import { PLACES } from './shell/places.js';
import { route } from './shell/route.js';
import { settings } from './session/issuer.js';
import { Session } from './session/session.js';
import { entering, show } from './sign_in.js';
import { store } from './shell/store.js';

const root = document.getElementById('app');

async function begin() {
  // While the person's organization is asked for.
  PLACES.find(({ page }) => page === (route(location.hash)?.page ?? 'home'))?.open().catch(() => {});
  const given = await settings();
  if (!given.stream_url) {
    return alone('This console has not been told where answers stream from. Tell whoever runs it to set StreamPublicUrl.');
  }
  const state = store(BEGINNING);
  const session = new Session(given);
  const api = new Api(session, given.stream_url);
  const entrance = new Entrance({ state, session, api });
  render(html`<${Page} state=${state} entrance=${entrance} api=${api} />`, root);
  window.addEventListener('hashchange', () => entrance.moved());
  document.addEventListener('visibilitychange', () => entrance.lookedAt());
  await entrance.start();
}

/** In the place of a page. */
function alone(sentence) {
  render(html`<main class="alone"><h1>Switchboard</h1><p role="alert">${sentence}</p></main>`, root);
}

entering?.then(begin).catch((error) => {
  console.error(error);
  show({ problem: 'The page could not be loaded whole. Check your connection, then load it again.' });
});
