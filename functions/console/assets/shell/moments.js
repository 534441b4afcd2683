// Times and lengths of time in words.

import { html } from '../htm-preact.js';

const UNITS = [['d', 86_400], ['h', 3_600], ['min', 60], ['s', 1]];

/** In the largest unit: `42 min`. */
function rough(seconds) {
  const [name, size] = UNITS.find(([, size]) => seconds >= size) ?? UNITS.at(-1);
  return `${Math.floor(seconds / size)} ${name}`;
}

/** Past or future. */
export function relative(at, now = Date.now()) {
  const seconds = (now - Date.parse(at)) / 1000;
  if (Number.isNaN(seconds)) return '–';
  if (Math.abs(seconds) < 1) return 'now';
  return seconds > 0 ? `${rough(seconds)} ago` : `in ${rough(-seconds)}`;
}

/** `42 min left`. */
export function left(at, now = Date.now()) {
  const seconds = (Date.parse(at) - now) / 1000;
  return seconds >= 1 ? `${rough(seconds)} left` : 'time is over';
}

/** Of milliseconds, in two units: `1 min 54 s`, `2.5 s`, `212 ms`. */
export function length(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return '–';
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1).replace(/\.0$/, '')} s`;
  const whole = Math.round(seconds);
  const at = Math.max(0, UNITS.findIndex(([, size]) => whole >= size));
  const [name, size] = UNITS[at];
  const [smaller, part] = UNITS[at + 1] ?? ['', Infinity];
  const rest = Math.floor((whole % size) / part);
  return rest ? `${Math.floor(whole / size)} ${name} ${rest} ${smaller}` : `${Math.floor(whole / size)} ${name}`;
}

/** With its zone, without the day if that is today. */
export function exact(at, now = Date.now()) {
  const then = new Date(at);
  if (Number.isNaN(then.getTime())) return '–';
  const today = then.toDateString() === new Date(now).toDateString();
  const day = today ? {} : { day: 'numeric', month: 'short', year: 'numeric' };
  return then.toLocaleString('en-GB', { ...day, hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' });
}

/** Relative, and exact while the row has the pointer or the focus. */
export function Moment({ at }) {
  if (!at) return html`<span class="quiet">–</span>`;
  return html`<time datetime=${at} title=${exact(at)}><span class="rel">${relative(at)}</span><span class="exact">${exact(at)}</span></time>`;
}
