// Entries of the audit log in words.

/** What an entry can be about, with the place that shows it. */
const KNOWN = {
  automation: ['Automation', 'automations'],
  tool: ['Tool', 'tools'],
  agent: ['Agent', 'agents'],
  number: ['Phone number', 'numbers'],
  knowledge: ['Knowledge base', 'knowledge'],
  approval: ['Approval', 'approvals'],
  event: ['Event', 'events'],
  run: ['Run', 'runs'],
  erasure: ['Erasure', null],
  member: ['Member', 'members'],
  key: ['Key', null],
  hook: ['Hook', null],
  service: ['Service', null],
};

export const NOUNS = Object.entries(KNOWN).map(([value, [word]]) => [value, word]);

/** `Automation activated`; what a newer version says is shown as it is. */
export function actionOf({ noun, action }) {
  const word = KNOWN[noun]?.[0] ?? String(noun).replaceAll('_', ' ');
  return `${word} ${String(action).replaceAll('_', ' ')}`;
}

/** The place that shows the thing; null if none does, or if it was deleted. */
export function placeOf({ noun, action }) {
  return action === 'deleted' || action === 'removed' ? null : (KNOWN[noun]?.[1] ?? null);
}
