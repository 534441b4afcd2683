// An event's outcome in words.

import { html } from '../htm-preact.js';
import { Status } from '../shell/status.js';

/** Null if the event began something. */
export function reasonOf({ matched, woke = [], unmatched, waiting, why }) {
  if (matched.length + woke.length > 0) return null;
  return why ?? unmatched[0]?.why ?? (waiting.length > 0 ? 'Automations that listen to it are still to be looked at.' : null);
}

const runsIn = ({ length }) => (length === 1 ? '1 run' : `${length} runs`);

export function Began({ of: { matched, woke = [], waiting } }) {
  const did = [matched.length > 0 && runsIn(matched), woke.length > 0 && `${runsIn(woke)} went on`].filter(Boolean).join(', ');
  if (did) return html`<${Status} of="succeeded">${did}<//>`;
  return waiting.length > 0 ? html`<${Status} of="queued">Waits<//>` : html`<${Status} of="skipped">Nothing<//>`;
}
