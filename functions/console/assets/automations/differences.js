// Differences of two definitions, by their places.

import { html } from '../htm-preact.js';

export function Differences({ of }) {
  const said = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
  return html`<ol class="diff">${of.map(({ pointer, change, from: before, to: after }) => html`<li key=${pointer}><p><span class="quiet">${change}</span> <code>${pointer || 'everything'}</code></p>
    ${change !== 'added' && html`<p class="del"><span aria-hidden="true">−</span><del>${said(before)}</del></p>`}${change !== 'removed' && html`<p class="ins"><span aria-hidden="true">+</span><ins>${said(after)}</ins></p>`}</li>`)}</ol>`;
}

/** `3 differences` */
export function countOf(changes) {
  return `${changes.length} ${changes.length === 1 ? 'difference' : 'differences'}`;
}
