// The signs of places and states. Each is drawn in a square of 16.

import { html } from '../htm-preact.js';

const LINES = {
  call: 'M5.2 1.8 6.6 5 5 6.4a9 9 0 0 0 4.6 4.6L11 9.4l3.2 1.4v2.4c0 .6-.5 1-1 1A11.4 11.4 0 0 1 1.8 2.8c0-.5.4-1 1-1z',
  chat: 'M2 3h12v8.5H7L3.5 14v-2.5H2z',
  hand: 'M2 8.5 6 12.5 14 4M2 3.5h5',
  runs: 'M4 2.6v10.8L13 8z',
  left: 'm9.5 4-4 4 4 4',
  x: 'm4 4 8 8m0-8-8 8',
  wait: 'M4 1.75h8M4 14.25h8M4.75 1.75c0 3.5 3.25 4 3.25 6.25 0-2.25 3.25-2.75 3.25-6.25M4.75 14.25c0-3.5 3.25-4 3.25-6.25 0 2.25 3.25 2.75 3.25 6.25',
  stop: 'M1.75 8a6.25 6.25 0 1 0 12.5 0 6.25 6.25 0 1 0-12.5 0M3.8 12.2l8.4-8.4',
  queued: 'M1.75 8a6.25 6.25 0 1 0 12.5 0 6.25 6.25 0 1 0-12.5 0M8 4.5V8l2.5 1.5',
  skip: 'm3 4 4 4-4 4m5-8 4 4-4 4',
  ask: 'M1.75 8a6.25 6.25 0 1 0 12.5 0 6.25 6.25 0 1 0-12.5 0M6.2 6.2a1.9 1.9 0 1 1 2.6 2c-.6.3-.8.6-.8 1.3M8 11.6v.1',
  part: 'M8 1.75 14.25 13.5H1.75zM8 6v3.5M8 11.6v.1',
  tool: 'M9.6 6.4 2.5 13.5M13.8 4.2a3.6 3.6 0 0 1-4.7 4.5 3.6 3.6 0 0 1 2.7-6.6L9.9 4.2l1.9 1.9z',
};
const FILLED = {
  ok: ['M1 8a7 7 0 1 0 14 0A7 7 0 1 0 1 8', 'm4.9 8.3 2.1 2.1 4.1-4.5'],
  bad: ['M4 1.5h8A2.5 2.5 0 0 1 14.5 4v8a2.5 2.5 0 0 1-2.5 2.5H4A2.5 2.5 0 0 1 1.5 12V4A2.5 2.5 0 0 1 4 1.5z', 'm5.4 5.4 5.2 5.2m0-5.2-5.2 5.2'],
  live: ['M8 3a5 5 0 1 0 0 10A5 5 0 1 0 8 3', ''],
};

export function Icon({ name, big = false }) {
  const filled = FILLED[name];
  return html`<svg class=${big ? 'i big' : 'i'} viewBox="0 0 16 16" aria-hidden="true">
    ${filled ? html`<path class="solid" d=${filled[0]} /><path class="cut" d=${filled[1]} />` : html`<path d=${LINES[name]} />`}
  </svg>`;
}
