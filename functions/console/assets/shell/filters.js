// Filters of a list, in the address, so that a link shows others the same rows.

import { html } from '../htm-preact.js';
import { TextInput } from './text_input.js';

const HOURS = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 };
const SPANS = [['', 'Any time'], ['1h', 'Last hour'], ['24h', 'Last 24 hours'], ['7d', 'Last 7 days'], ['30d', 'Last 30 days']];
const FIVE_MINUTES = 300_000;

export const SINCE = { name: 'since', word: 'Time', options: SPANS };

/** For the API: spans as a moment, rounded so that the address holds for five minutes. */
export function asked(query, fields, now = Date.now()) {
  return Object.fromEntries(fields.map(({ name }) => {
    const value = query[name] || null;
    const hours = name === 'since' && HOURS[value];
    return [name, hours ? new Date(Math.floor((now - hours * 3_600_000) / FIVE_MINUTES) * FIVE_MINUTES).toISOString() : value];
  }));
}

/** `fields`: `{name, word, options: [value, word][]}`, or without options for a text; `to` makes a query's address. */
export function Filters({ fields, query, to }) {
  const set = (name) => ({ target }) => {
    location.hash = to({ ...query, [name]: target.value.trim() });
  };
  const given = fields.filter(({ name }) => query[name]);
  return html`<form class="filters" aria-label="Filters" onSubmit=${(event) => event.preventDefault()}>
    ${fields.map(({ name, word, options }) => {
      const value = query[name] ?? '';
      const known = !options || options.some(([one]) => one === value) ? options : [...options, [value, value]];
      return html`<label key=${name} class=${value ? 'on' : ''}><span>${word}</span>
        ${options
          ? html`<select data-filter=${name} value=${value} onChange=${set(name)}>${known.map(([one, says]) => html`<option value=${one} selected=${one === value}>${says}</option>`)}</select>`
          : html`<${TextInput} data-filter=${name} type="search" value=${value} onChange=${set(name)} />`}</label>`;
    })}
    ${given.length > 0 && html`<a class="small" data-clear href=${to(Object.fromEntries(fields.map(({ name }) => [name, ''])))}>Clear filters</a>`}
  </form>`;
}
