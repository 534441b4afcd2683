// Bars over time, with a table below.

import { html } from '../htm-preact.js';
import { ticks } from './chart_shapes.js';

/**
 * `bars` are `{word, value, bad?, label?}`, oldest first: words stand in the table, labels below their bar, `bad` is a part of the value.
 * `says` is the picture in a sentence.
 */
export function Bars({ bars, says, head, shown = String, whole = true }) {
  const marks = ticks(bars.map(({ value }) => value), 3).filter((mark) => !whole || Number.isInteger(mark));
  const top = marks.at(-1) || 1;
  const y = (value) => 150 - (value / top) * 130;
  const wide = 95 / bars.length;
  const x = (place, by) => `${(place * wide + by * wide).toFixed(2)}%`;
  return html`<svg class="chart" width="100%" height="180" role="img" aria-label=${says}>
      ${marks.map((mark) => html`<line class=${mark === 0 ? 'base' : 'grid'} x1="0" x2="95%" y1=${y(mark)} y2=${y(mark)} /><text x="100%" y=${y(mark) + 4} text-anchor="end">${shown(mark)}</text>`)}
      ${bars.map(({ value, bad, label }, place) => html`
        ${value > 0 && html`<rect class=${place === bars.length - 1 ? 'bar now' : 'bar'} x=${x(place, 0.15)} width=${x(0, 0.7)} y=${y(value)} height=${150 - y(value)} rx="2" />`}
        ${bad > 0 && html`<rect class="bar bad" x=${x(place, 0.15)} width=${x(0, 0.7)} y=${y(bad)} height=${150 - y(bad)} rx="2" />`}
        ${label && html`<text x=${x(place, 0)} y="170">${label}</text>`}`)}
    </svg>
    <details class="same"><summary>The same as a table</summary><table class="slim"><thead><tr>${head.map((word, place) => html`<th scope="col" class=${place ? 'num' : ''}>${word}</th>`)}</tr></thead>
      <tbody>${bars.map(({ word, value, bad = 0 }) => html`<tr><th scope="row">${word}</th><td class="num">${shown(value)}</td>${head[2] && html`<td class="num">${shown(bad)}</td>`}</tr>`)}</tbody></table></details>`;
}
