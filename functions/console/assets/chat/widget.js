// Tools' widgets: tables, charts, maps, cards and lists.

import { addressOf } from './markdown.js';
import { Chart } from './chart.js';
import { html } from '../htm-preact.js';
import { MapPlot } from './map.js';

export function Widget({ widget }) {
  const Drawn = FORMS[widget?.type] ?? Unknown;
  return html`<figure class="widget" data-widget=${widget?.type ?? ''}>
    ${widget?.title && html`<figcaption>${widget.title}</figcaption>`}
    <${Drawn} widget=${widget} />
  </figure>`;
}

const FORMS = { table: Table, chart: Chart, map: MapPlot, card: Card, list: List };

/** Of a newer version. */
function Unknown() {
  return html`<p class="quiet">This cannot be drawn here. Load the page again to get its newest version.</p>`;
}

function Table({ widget }) {
  const { columns = [], rows = [], title } = widget;
  // Numbers align right.
  const numbers = columns.map((_, place) => rows.every((row) => row[place] === null || typeof row[place] === 'number'));
  return html`
    <div class="wide" tabindex="0" role="group" aria-label=${title ?? 'Table'}>
      <table>
        <thead>
          <tr>
            ${columns.map((column, place) => html`<th scope="col" class=${numbers[place] ? 'number' : ''}>${column}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            (row) => html`<tr>
              ${row.map((cell, place) => html`<td class=${numbers[place] ? 'number' : ''}>${plain(cell)}</td>`)}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  `;
}

function Card({ widget }) {
  const { text, fields = [], url } = widget;
  const address = addressOf(url);
  return html`
    ${text && html`<p>${text}</p>`}
    ${fields.length > 0 &&
    html`<dl class="values">
      ${fields.map(
        ({ name, value }) => html`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`,
      )}
    </dl>`}
    ${address?.protocol === 'https:' &&
    html`<p><a href=${url} rel="noopener noreferrer" target="_blank">${address.hostname}</a></p>`}
  `;
}

function List({ widget }) {
  return html`<ul>
    ${(widget.items ?? []).map((item) => html`<li>${item}</li>`)}
  </ul>`;
}

function plain(cell) {
  if (cell === null || cell === undefined) return '–';
  // Unformatted: a year is a number, too.
  return typeof cell === 'object' ? JSON.stringify(cell) : String(cell);
}
