// The middle of a page: its head with the way back, and what it is about.

import { html, useEffect, useRef } from '../htm-preact.js';

let first = true;

/** `crumb` is `{word, href}` of the list that a detail belongs to. The first page that is shown does not take the focus. */
export function Main({ title, crumb = null, status = null, acts = null, children }) {
  const main = useRef(null);
  useEffect(() => {
    if (!first) main.current.focus();
    first = false;
  }, []);
  return html`<main id="main" tabindex="-1" ref=${main}>
    <div class="head">
      ${crumb && html`<a class="crumb" data-close href=${crumb.href}>${crumb.word}</a><span class="sep" aria-hidden="true">/</span>`}
      <h1><bdi>${title}</bdi></h1>
      ${status}
      ${acts && html`<div class="acts">${acts}</div>`}
    </div>
    ${children}
  </main>`;
}
