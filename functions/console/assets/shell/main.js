// The middle of a page: its head with the way back, and its content.

import { html, useEffect, useRef } from '../htm-preact.js';

let first = true;

/** `crumb`: `{word, href}` of a detail's list. The first page shown does not take the focus. */
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
