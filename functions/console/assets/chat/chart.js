// Bar, line and pie charts in SVG, with a table for screen readers.

import { scale, slices, ticks } from '../shell/chart_shapes.js';
import { html } from '../htm-preact.js';

const WIDTH = 640;
const HEIGHT = 280;
const MARGIN = { top: 12, right: 12, bottom: 32, left: 56 };
const COLORS = 6;

export function Chart({ widget }) {
  const { kind, labels = [], series = [], title } = widget;
  const what = title ?? `A ${kind} chart`;
  const Drawn = kind === 'pie' ? Pie : Axes;
  const legend = kind === 'pie' ? labels : series.map((one) => one.name);
  return html`
    <${Drawn} ...${{ kind, labels, series, what }} />
    ${(kind === 'pie' || series.length > 1) &&
    html`<ul class="legend" aria-hidden="true">
      ${legend.map((name, place) => html`<li><span class="swatch color-${(place % COLORS) + 1}"></span>${name}${shareOf(kind, series, place)}</li>`)}
    </ul>`}
    <details class="numbers">
      <summary>Numbers</summary>
      <div class="wide" tabindex="0" role="group" aria-label="Numbers of ${what}">
        <table>
          <thead>
            <tr>
              <td></td>
              ${series.map((one) => html`<th scope="col" class="number">${one.name}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${labels.map(
              (label, place) => html`<tr>
                <th scope="row">${label}</th>
                ${series.map((one) => html`<td class="number">${one.values[place]?.toLocaleString('en')}</td>`)}
              </tr>`,
            )}
          </tbody>
        </table>
      </div>
    </details>
  `;
}

function shareOf(kind, series, place) {
  if (kind !== 'pie') return '';
  const { share } = slices(series[0]?.values ?? [])[place] ?? { share: 0 };
  return ` ${Math.round(share * 100)} %`;
}

function Pie({ series, what }) {
  return html`<svg class="pie" viewBox="-1.05 -1.05 2.1 2.1" role="img" aria-label=${what}>
    ${slices(series[0]?.values ?? []).map(
      ({ path }, place) => path && html`<path d=${path} class="fill color-${(place % COLORS) + 1}" />`,
    )}
  </svg>`;
}

function Axes({ kind, labels, series, what }) {
  const marks = ticks(series.flatMap((one) => one.values));
  const up = scale([marks[0], marks.at(-1)], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const inner = WIDTH - MARGIN.left - MARGIN.right;
  const band = inner / Math.max(labels.length, 1);
  const middle = (place) => MARGIN.left + band * (place + 0.5);
  const every = Math.ceil(labels.length / 12);
  const room = Math.max(4, Math.floor((band * every) / 7));
  return html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label=${what}>
    ${marks.map(
      (mark) => html`<g>
        <line class=${mark === 0 ? 'zero' : 'grid'} x1=${MARGIN.left} x2=${WIDTH - MARGIN.right} y1=${up(mark)} y2=${up(mark)} />
        <text class="label" x=${MARGIN.left - 8} y=${up(mark) + 4} text-anchor="end">${short(mark)}</text>
      </g>`,
    )}
    ${labels.map(
      (label, place) =>
        place % every === 0 &&
        html`<text class="label" x=${middle(place)} y=${HEIGHT - 10} text-anchor="middle">
          ${label.length > room ? `${label.slice(0, room - 1)}…` : label}
        </text>`,
    )}
    ${kind === 'line' ? lines({ series, middle, up }) : bars({ series, labels, middle, band, up })}
  </svg>`;
}

function bars({ series, labels, middle, band, up }) {
  const width = (band * 0.72) / Math.max(series.length, 1);
  return series.map((one, row) =>
    labels.map((label, place) => {
      const value = one.values[place] ?? 0;
      const [top, bottom] = [up(Math.max(value, 0)), up(Math.min(value, 0))];
      const left = middle(place) + (row - series.length / 2) * width;
      return html`<rect
        class="fill color-${(row % COLORS) + 1}"
        x=${left}
        y=${top}
        width=${Math.max(width - 2, 1)}
        height=${Math.max(bottom - top, 0.5)}
        rx="2"
      >
        <title>${`${label}, ${one.name}: ${value.toLocaleString('en')}`}</title>
      </rect>`;
    }),
  );
}

function lines({ series, middle, up }) {
  return series.map((one, row) => {
    const color = `color-${(row % COLORS) + 1}`;
    const points = one.values.map((value, place) => `${middle(place)},${up(value)}`);
    return html`<g>
      <polyline class="stroke ${color}" points=${points.join(' ')} />
      ${one.values.map((value, place) => html`<circle class="fill ${color}" cx=${middle(place)} cy=${up(value)} r="3" />`)}
    </g>`;
  });
}

function short(value) {
  return value.toLocaleString('en', { notation: 'compact', maximumFractionDigits: 2 });
}
