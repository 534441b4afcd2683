// Names and values, as a tool is given them.

import { html } from './htm-preact.js';

/** An object as a list of its members; anything else as text. */
export function Values({ values }) {
  if (values === null || typeof values !== 'object' || Array.isArray(values)) return html`<pre tabindex="0">${shown(values)}</pre>`;
  const members = Object.entries(values);
  if (members.length === 0) return html`<p class="quiet">Nothing.</p>`;
  return html`
    <dl class="values">
      ${members.map(
        ([name, value]) => html`<div key=${name}>
          <dt>${name}</dt>
          <dd>${shown(value)}</dd>
        </div>`,
      )}
    </dl>
  `;
}

function shown(value) {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
