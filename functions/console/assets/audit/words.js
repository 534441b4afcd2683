// Entries of the audit log in words.

/** What an entry can be about, with the place that shows it. */
const KNOWN = {
  automation: ['Automation', 'automations'],
  tool: ['Tool', 'tools'],
  agent: ['Agent', 'agents'],
  phone_number: ['Phone number', 'numbers'],
  knowledge_base: ['Knowledge base', 'knowledge'],
  approval: ['Approval', 'approvals'],
  event: ['Event', 'events'],
  replay: ['Replay', null],
  run: ['Run', 'runs'],
  call: ['Call', 'calls'],
  erasure: ['Erasure', null],
  member: ['Member', 'members'],
  key: ['Key', null],
  hook: ['Hook', null],
  service: ['Service', null],
  other: ['Something else', null],
};

export const NOUNS = Object.entries(KNOWN).map(([value, [word]]) => [value, word]);

/** `Automation activated`; what a newer version says is shown as it is. */
export function actionOf({ noun, action }) {
  const word = KNOWN[noun]?.[0] ?? String(noun).replaceAll('_', ' ');
  return `${word} ${String(action).replaceAll('_', ' ')}`;
}

/** The place that shows the thing; null if none does, or if it was deleted. */
export function placeOf({ noun, action, of }) {
  return action === 'deleted' || !of ? null : (KNOWN[noun]?.[1] ?? null);
}
