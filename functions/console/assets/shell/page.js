// The page as a whole: its head, what stands in its middle, and what is said aloud.

import { ChatView } from '../chat/chat_view.js';
import { html, useEffect, useRef, useState } from '../htm-preact.js';
import { Notice } from './notice.js';

const TITLES = { starting: 'Switchboard', 'signed-out': 'Sign in', choosing: 'Choose an organization', broken: 'Switchboard' };

export function Page({ state, chat }) {
  const [shown, show] = useState(state.get());
  useEffect(() => {
    show(state.get());
    return state.listen(show);
  }, [state]);
  const { phase } = shown;
  useEffect(() => {
    document.title = phase === 'chatting' ? 'Chat · Switchboard' : `${TITLES[phase] ?? 'Switchboard'}`;
  }, [phase]);

  return html`
    ${phase === 'chatting' && !shown.readOnly && html`<a class="skip" href="#message">Write a message</a>`}
    <${Head} shown=${shown} chat=${chat} />
    ${phase === 'chatting' && html`<${ChatView} shown=${shown} chat=${chat} />`}
    ${phase === 'signed-out' && html`<${SignedOut} shown=${shown} chat=${chat} />`}
    ${phase === 'choosing' && html`<${Choice} shown=${shown} chat=${chat} />`}
    ${phase === 'broken' && html`<main class="alone"><h1>Switchboard</h1><${Notice} notice=${shown.notice} /></main>`}
    ${phase === 'starting' && html`<main class="alone"><h1>Switchboard</h1><p>One moment …</p></main>`}
    <div class="aloud" role="status" aria-live="polite">${shown.announcement}</div>
  `;
}

function Head({ shown, chat }) {
  const { person, organization, organizations, phase } = shown;
  return html`
    <header class="head">
      <p class="brand"><span class="mark" aria-hidden="true"></span>Switchboard</p>
      ${phase === 'chatting' &&
      html`<nav aria-label="Console">
        <ul class="places"><li><a href="#conversation" aria-current="page">Chat</a></li></ul>
      </nav>`}
      <div class="who">
        ${phase === 'chatting' && organizations.length > 1
          ? html`<label class="choice"
              ><span>Organization</span>
              <select id="organization" value=${organization} onChange=${(event) => chat.choose(event.target.value)}>
                ${organizations.map((slug) => html`<option value=${slug}>${slug}</option>`)}
              </select></label
            >`
          : phase === 'chatting' && organization && html`<span class="quiet">${organization}</span>`}
        ${person && html`<span class="person" title=${person}>${person}</span>`}
        ${person && html`<button type="button" id="sign-out" class="plain" onClick=${() => chat.signOut()}>Sign out</button>`}
      </div>
    </header>
  `;
}

/** What a page is about; who comes to it goes on reading here. */
function Heading({ children }) {
  const heading = useRef(null);
  useEffect(() => heading.current.focus(), []);
  return html`<h1 tabindex="-1" ref=${heading}>${children}</h1>`;
}

function SignedOut({ shown, chat }) {
  return html`
    <main class="alone">
      <${Heading}>Sign in<//>
      <p>Chat with the tools of your organization: ask, see what is called and what it gives, and decide what may be done.</p>
      <${Notice} notice=${shown.notice} />
      <button type="button" id="sign-in" class="main" onClick=${() => chat.signIn()}>Sign in</button>
      ${shown.signOutEverywhere &&
      html`<p class="quiet">
        You are signed out of this page. <a id="sign-out-everywhere" href=${shown.signOutEverywhere}>Sign out of the sign-in service, too</a>
        if others use this device.
      </p>`}
    </main>
  `;
}

function Choice({ shown, chat }) {
  return html`
    <main class="alone">
      <${Heading}>Choose an organization<//>
      <p>You belong to several. You can change to another one later.</p>
      <${Notice} notice=${shown.notice} />
      <ul class="choices">
        ${shown.organizations.map(
          (slug) => html`<li key=${slug}>
            <button type="button" data-organization=${slug} onClick=${() => chat.choose(slug)}>${slug}</button>
          </li>`,
        )}
      </ul>
    </main>
  `;
}
