// Status: always a word, a shape and a colour.

import { html } from '../htm-preact.js';
import { Icon } from './icons.js';

const KNOWN = {
  // Approvals
  pending: ['Waits for a decision', 'wait', 'wait'],
  approved: ['Allowed', 'good', 'ok'],
  refused: ['Refused', 'bad', 'bad'],
  expired: ['Expired', 'done', 'stop'],
  cancelled: ['Cancelled', 'done', 'stop'],
  // Automations
  active: ['Active', 'good', 'ok'],
  paused: ['Paused', 'wait', 'pause'],
  pending_review: ['Not active', 'done', 'queued'],
  // Runs, executions and actions
  queued: ['Queued', 'done', 'queued'],
  running: ['Running', 'live', 'live'],
  waiting_for_approval: ['Waits for approval', 'wait', 'wait'],
  completed: ['Completed', 'good', 'ok'],
  succeeded: ['Succeeded', 'good', 'ok'],
  partial_failure: ['Partly failed', 'bad', 'part'],
  partial: ['Partly done', 'bad', 'part'],
  failed: ['Failed', 'bad', 'bad'],
  unknown: ['Unknown', 'wait', 'ask'],
  skipped: ['Skipped', 'done', 'skip'],
  not_sent: ['Not sent', 'done', 'stop'],
  not_run: ['Not run', 'done', 'stop'],
  invalid: ['Invalid', 'bad', 'bad'],
  replayed: ['Replayed', 'done', 'skip'],
  repeated: ['Repeated', 'done', 'skip'],
  limited: ['Limited', 'wait', 'part'],
  read_back: ['Read back', 'wait', 'part'],
  // What an agent confirmed
  unproven: ['Unproven', 'bad', 'ask'],
  // Replays of events
  planned: ['Planned', 'done', 'queued'],
  // Calls
  scheduled: ['Scheduled', 'done', 'queued'],
  ringing: ['Ringing', 'live', 'live'],
  'in-progress': ['In progress', 'live', 'live'],
  forwarding: ['Forwarding', 'live', 'live'],
  ended: ['Ended', 'done', 'stop'],
};

/** A newer version's word is shown as it is. */
export function wordOf(status) {
  const word = String(status ?? 'unknown').replaceAll(/[-_]/g, ' ');
  return KNOWN[status]?.[0] ?? word[0].toUpperCase() + word.slice(1);
}

export function Status({ of, children }) {
  const [, kind, icon] = KNOWN[of] ?? ['', String(of).endsWith('_limit') ? 'bad' : 'done', String(of).endsWith('_limit') ? 'part' : 'ask'];
  return html`<span class="st ${kind}" data-status=${of}><${Icon} name=${icon} /><span>${children ?? wordOf(of)}</span></span>`;
}
