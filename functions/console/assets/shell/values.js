// Names and values of a tool as text, not JSON.

import { html } from '../htm-preact.js';

/** Nested lists and objects; deeper ones are shown as JSON. */
const DEEPEST = 3;

/** Objects as lists of members, lists as items, anything else as text. */
export function Values({ values }) {
  if (values === null || typeof values !== 'object') return html`<pre tabindex="0" dir="auto">${text(values)}</pre>`;
  return html`<${Value} value=${values} depth=${0} />`;
}

function Value({ value, depth }) {
  if (value === null || typeof value !== 'object') return html`<bdi>${text(value)}</bdi>`;
  if (depth > DEEPEST) return JSON.stringify(value, null, 2);
  const members = Object.entries(value);
  if (members.length === 0) return html`<span class="quiet">Nothing.</span>`;
  if (Array.isArray(value)) {
    return html`<ul class="listed-values">
      ${value.map((item, place) => html`<li key=${place}><${Value} value=${item} depth=${depth + 1} /></li>`)}
    </ul>`;
  }
  return html`<${Named} members=${members.map(([name, inner]) => ({ name, shown: html`<${Value} value=${inner} depth=${depth + 1} />` }))} />`;
}

/** `{name, shown, remark?}` of each member. */
export function Named({ members }) {
  return html`
    <dl class="values">
      ${members.map(
        ({ name, shown, remark }) => html`<div key=${name}>
          <dt>${name}${remark && html` <span class="remark">${remark}</span>`}</dt>
          <dd dir="auto">${shown}</dd>
        </div>`,
      )}
    </dl>
  `;
}

function text(value) {
  if (value === null || value === undefined) return 'nothing';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return String(value);
}
