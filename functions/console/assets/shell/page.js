// The whole page: the navigation, and the place in the address.

import { waitingIn } from '../approvals/asked.js';
import { html, useEffect, useMemo, useRef, useState } from '../htm-preact.js';
import { Icon } from './icons.js';
import { keys } from './shortcuts.js';
import { useLive } from './live.js';
import { Main } from './main.js';
import { useModal } from './modal.js';
import { Notice } from './notice.js';
import { PLACES } from './places.js';
import { SignInNeeded } from './problems.js';
import { addressOf, route } from './route.js';

const WAITING_EVERY = 5_000;

export function Page({ state, entrance, api }) {
  const [shown, show] = useState(state.get());
  useEffect(() => {
    show(state.get());
    return state.listen(show);
  }, [state]);
  const { phase } = shown;
  useEffect(() => {
    if (phase !== 'inside') document.title = phase === 'choosing' ? 'Choose an organization · Switchboard' : 'Switchboard';
  }, [phase]);
  if (phase === 'inside') return html`<${Inside} key=${shown.organization} shown=${shown} entrance=${entrance} api=${api} />`;
  if (phase === 'choosing') return html`<${Choice} shown=${shown} entrance=${entrance} />`;
  return html`<main class="alone"><h1>Switchboard</h1>${shown.notice ? html`<${Notice} notice=${shown.notice} />` : html`<p>One moment …</p>`}</main>`;
}

function Inside({ shown, entrance, api: any }) {
  const { organization: slug, role } = shown;
  const [api] = useState(() => any.within(slug));
  const at = route(shown.hash) ?? { page: 'home', id: null, query: {} };
  const place = PLACES.find(({ page }) => page === at.page);
  const asked = useLive(slug, () => waitingIn(api), () => WAITING_EVERY);
  const { items, next_cursor: more } = asked.data ?? { items: [] };
  const waiting = items.length > 0 && `${items.length}${more ? '+' : ''}`;
  const [helps, help] = useState(false);
  useEffect(() => {
    document.title = `${waiting ? `(${waiting}) ` : ''}${place?.word ?? 'Not found'} · ${slug} · Switchboard`;
  }, [waiting, place, slug]);
  useEffect(() => {
    const read = keys();
    const onKeyDown = (event) => {
      const meaning = document.querySelector('dialog[open]') ? null : read(event);
      if (!meaning) return;
      event.preventDefault();
      act(meaning, { slug, help });
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, [slug]);
  const told = { api, slug, role, at, signIn: () => entrance.signIn(), refresh: asked.again };
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the page</a>
    <div class="app">
      <${Navigation} shown=${shown} entrance=${entrance} current=${at.page} waiting=${waiting} onHelp=${() => help(true)} />
      ${place ? html`<${Place} key=${place.page} place=${place} told=${told} />` : html`<${Lost} slug=${slug} />`}
    </div>
    <p class="aloud" role="status" id="done"></p>
    ${asked.error instanceof SignInNeeded &&
    html`<div class="over say wait" role="alert"><${Icon} name="wait" /><p>${asked.error.message}</p>
      <div class="acts"><button type="button" class="btn main" onClick=${told.signIn}>Sign in again</button></div></div>`}
    ${helps && html`<${Help} onClose=${() => help(false)} />`}
  `;
}

function skip(event) {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

/** A shortcut's effect. */
function act(meaning, { slug, help }) {
  if (meaning === 'help') return help(true);
  if (meaning === 'close') return [...document.querySelectorAll('[data-close]')].at(-1)?.click();
  const [, letter] = meaning.split('go:');
  if (letter) {
    const place = PLACES.find(({ key }) => key === letter);
    if (place) location.hash = addressOf({ slug, page: place.page });
    return;
  }
  const rows = [...document.querySelectorAll('a[data-row]')];
  const now = rows.findIndex((row) => row === document.activeElement || (row.hasAttribute('aria-current') && !rows.includes(document.activeElement)));
  const row = rows[now === -1 ? 0 : now + (meaning === 'next' ? 1 : -1)];
  row?.focus();
  if (row?.closest('.master')) row.click();
}

/** A place whose script comes when it is opened. */
export function Place({ place, told }) {
  const [{ View, error }, come] = useState({});
  const load = () => place.open().then(({ View }) => come({ View }), (error) => come({ error }));
  useEffect(() => {
    load();
  }, []);
  if (View) return html`<${View} ...${told} />`;
  return html`<${Main} title=${place.word}>
    ${error &&
    html`<div class="body"><div class="say bad" role="alert"><${Icon} name="bad" /><p><b>This page could not be loaded.</b> Check your connection.</p>
      <div class="acts"><button type="button" class="btn" onClick=${() => location.reload()}>Load again</button></div></div></div>`}
  <//>`;
}

function Lost({ slug }) {
  return html`<${Main} title="Not found"><div class="nothing"><h2>There is no such page</h2>
    <p class="quiet">The address may be mistyped, or of another version.</p><a class="btn" href=${addressOf({ slug, page: 'home' })}>Go to Home</a></div><//>`;
}

function Navigation({ shown, entrance, current, waiting, onHelp }) {
  const { organization: slug, organizations, role, person } = shown;
  const more = useRef(null);
  const link = ({ page, word, icon, first }) => html`<li key=${page} class=${first ? 'first' : ''}>
    <a href=${addressOf({ slug, page })} data-place=${page} aria-current=${page === current ? 'page' : null} onClick=${() => more.current?.removeAttribute('open')}>
      <${Icon} name=${icon} /><span>${word}</span>
      ${page === 'approvals' && waiting && html`<span class="count">${waiting}<span class="aloud"> waiting</span></span>`}
    </a>
  </li>`;
  return html`<header class="nav">
    <a class="brand" href=${addressOf({ slug, page: 'home' })}><${Mark} />Switchboard</a>
    <div class="org">
      ${organizations.length > 1
        ? html`<select id="organization" aria-label="Organization" value=${slug} onChange=${(event) => entrance.choose(event.target.value)}>
            ${organizations.map((known) => html`<option value=${known}>${known}</option>`)}
          </select>`
        : html`<b><bdi>${slug}</bdi></b>`}
      <small>You are ${/^[ao]/.test(role) ? 'an' : 'a'} ${role}</small>
    </div>
    <nav aria-label="Places">
      <ul class="places">${PLACES.map(link)}</ul>
      <details class="more" ref=${more}>
        <summary><${Icon} name="dots" /><span>More</span></summary>
        <ul class="places">${PLACES.filter(({ first }) => !first).map(link)}</ul>
      </details>
    </nav>
    <div class="foot">
      <p class="who" title=${person}>${person}</p>
      <div class="chips">
        <button type="button" id="sign-out" class="btn bare" onClick=${() => entrance.signOut()}>Sign out</button>
        <button type="button" class="btn bare wideonly" onClick=${onHelp}>Keys <kbd>?</kbd></button>
      </div>
    </div>
  </header>`;
}

function Mark() {
  return html`<svg class="mark" viewBox="0 0 18 18" aria-hidden="true">
    <path class="a" d="M5 0h8a5 5 0 0 1 5 5v8a5 5 0 0 1-1.5 3.5L1.5 1.5A5 5 0 0 1 5 0z" /><path class="b" d="M1.5 1.5 16.5 16.5A5 5 0 0 1 13 18H5a5 5 0 0 1-5-5V5a5 5 0 0 1 1.5-3.5z" />
  </svg>`;
}

function Help({ onClose }) {
  const dialog = useModal();
  const lines = useMemo(() => [['j', 'k', 'Next and previous row'], ['Enter', '', 'Open the row'], ['Esc', '', 'Close, or back to the list'], ...PLACES.map(({ key, word }) => ['g', key, word])], []);
  return html`<dialog ref=${dialog} aria-labelledby="h-keys" onClose=${onClose}>
    <h2 id="h-keys">Keys</h2>
    <dl class="keys">${lines.map(([one, two, says]) => html`<dt><kbd>${one}</kbd> ${two && html`<kbd>${two}</kbd>`}</dt><dd>${says}</dd>`)}</dl>
    <p class="quiet small">They work while no field has the focus.</p>
    <form method="dialog"><button class="btn">Close</button></form>
  </dialog>`;
}

/** The page's subject; a visitor goes on reading here. */
function Heading({ children }) {
  const heading = useRef(null);
  useEffect(() => heading.current.focus(), []);
  return html`<h1 tabindex="-1" ref=${heading}>${children}</h1>`;
}

function Choice({ shown, entrance }) {
  return html`<main class="alone">
    <${Heading}>Choose an organization<//>
    <p>You belong to several. You can change to another one later.</p>
    <ul class="choices">
      ${shown.organizations.map((slug) => html`<li key=${slug}><button type="button" class="btn" data-organization=${slug} onClick=${() => entrance.choose(slug)}>${slug}</button></li>`)}
    </ul>
  </main>`;
}
