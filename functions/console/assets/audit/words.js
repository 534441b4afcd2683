// Entries of the audit log in words.

/** The nouns of entries, with the places that show them. */
const KNOWN = {
  automation: ['Automation', 'automations'],
  tool: ['Tool', 'tools'],
  agent: ['Agent', 'agents'],
  phone_number: ['Phone number', 'numbers'],
  knowledge_base: ['Knowledge base', 'knowledge'],
  approval: ['Approval', 'approvals'],
  do_not_call: ['Do-not-call entry', 'donotcall'],
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

/** `Automation activated`; words of a newer version are shown as they are. */
export function actionOf({ noun, action }) {
  const word = KNOWN[noun]?.[0] ?? String(noun).replaceAll('_', ' ');
  return `${word} ${String(action).replaceAll('_', ' ')}`;
}

/** Null if no place shows the thing, or if it was deleted. */
export function placeOf({ noun, action, of }) {
  return action === 'deleted' || !of ? null : (KNOWN[noun]?.[1] ?? null);
}
