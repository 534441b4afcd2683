// The filters of a list, as fields above it.

import { html } from '../htm-preact.js';
import { TextInput } from './text_input.js';

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
          ? html`<select data-filter=${name} value=${value} onChange=${set(name)}>${known.map(([one, says]) => html`<option value=${one} selected=${one === value} disabled=${one === false}>${says}</option>`)}</select>`
          : html`<${TextInput} data-filter=${name} type="search" value=${value} onChange=${set(name)} />`}</label>`;
    })}
    ${given.length > 0 && html`<a class="small" data-clear href=${to(Object.fromEntries(fields.map(({ name }) => [name, ''])))}>Clear filters</a>`}
  </form>`;
}
