// Places on a plain plot of longitude and latitude: without a map, no third party learns the place.

import { bounds, scale } from '../shell/chart_shapes.js';
import { html } from '../htm-preact.js';

const WIDTH = 640;
const HEIGHT = 320;
const EDGE = 24;

export function MapPlot({ widget }) {
  const { markers = [], title } = widget;
  if (markers.length === 0) return html`<p class="quiet">No places.</p>`;
  const { west, east, south, north } = bounds(markers);
  const x = scale([west, east], [EDGE, WIDTH - EDGE]);
  const y = scale([south, north], [HEIGHT - EDGE, EDGE]);
  const thirds = (low, high) => [1, 2].map((part) => low + ((high - low) * part) / 3);
  return html`
    <svg class="map" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label=${title ?? 'Places'}>
      <rect class="ground" width=${WIDTH} height=${HEIGHT} rx="6" />
      ${thirds(west, east).map(
        (at) => html`<g>
          <line class="grid" x1=${x(at)} x2=${x(at)} y1="0" y2=${HEIGHT} />
          <text class="label" x=${x(at) + 4} y=${HEIGHT - 6}>${degrees(at, 'E', 'W')}</text>
        </g>`,
      )}
      ${thirds(south, north).map(
        (at) => html`<g>
          <line class="grid" x1="0" x2=${WIDTH} y1=${y(at)} y2=${y(at)} />
          <text class="label" x="4" y=${y(at) - 4}>${degrees(at, 'N', 'S')}</text>
        </g>`,
      )}
      ${markers.map(
        ({ latitude, longitude }, place) => html`<g>
          <circle class="fill color-1" cx=${x(longitude)} cy=${y(latitude)} r="10" />
          <text class="pin" x=${x(longitude)} y=${y(latitude) + 4} text-anchor="middle">${place + 1}</text>
        </g>`,
      )}
    </svg>
    <ol>
      ${markers.map(
        ({ latitude, longitude, label }) => html`<li>
          ${label && `${label}, `}<span class="quiet">${degrees(latitude, 'N', 'S', 4)} ${degrees(longitude, 'E', 'W', 4)}</span>
        </li>`,
      )}
    </ol>
  `;
}

function degrees(value, above, below, digits = 2) {
  return `${Math.abs(value).toFixed(digits)}° ${value < 0 ? below : above}`;
}
