// An event's outcome in words.

import { html } from '../htm-preact.js';
import { Status } from '../shell/status.js';

/** Null if the event began something. */
export function reasonOf({ matched, unmatched, waiting, why }) {
  if (matched.length > 0) return null;
  return why ?? unmatched[0]?.why ?? (waiting.length > 0 ? 'Automations that listen to it are still to be looked at.' : null);
}

export function Began({ of: { matched, waiting } }) {
  if (matched.length > 0) return html`<${Status} of="succeeded">${matched.length === 1 ? '1 run' : `${matched.length} runs`}<//>`;
  return waiting.length > 0 ? html`<${Status} of="queued">Waits<//>` : html`<${Status} of="skipped">Nothing<//>`;
}
