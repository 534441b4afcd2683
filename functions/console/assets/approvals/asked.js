// An approval's request, in words.

import { pages } from '../shell/pages.js';

/** Requests that wait for a decision. The API filters pages of all approvals. */
export function waitingIn(api) {
  return pages((cursor) => api.read('approvals', { status: 'pending', limit: 200, cursor }));
}

/** `gmail_send_email` is "Gmail send email". */
export function wordsOf(tool) {
  const words = String(tool ?? '').replaceAll(/[_-]+/g, ' ').trim();
  return words ? words[0].toUpperCase() + words.slice(1) : 'An action';
}

/** Shortened: `ana@x.example and 2 more`; empty if nobody is named. */
export function recipientsIn({ recipients = [] }) {
  const [first, ...others] = recipients ?? [];
  if (!first) return '';
  return others.length === 0 ? first : `${first} and ${others.length} more`;
}

export function titleOf(approval) {
  const to = recipientsIn(approval);
  return to ? `${wordsOf(approval.tool)} to ${to}` : wordsOf(approval.tool);
}

/** The first to expire of the pending approvals, except `but`. */
export function mostUrgent(items, but = null) {
  const waiting = (items ?? []).filter((item) => item.status === 'pending' && item.id !== but);
  return waiting.sort((one, other) => Date.parse(one.expires_at) - Date.parse(other.expires_at))[0] ?? null;
}
