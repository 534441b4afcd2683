// A call's facts in words.

/** The person's number, or why there is none. */
export function callerOf({ direction, caller_phone_number: caller, called_phone_number: called }) {
  const number = direction === 'outbound' ? called : caller;
  if (!number) return 'Unknown caller';
  return /^\+?\d/.test(number) || number.startsWith('sip:') ? number : 'Number withheld';
}

/** The effects that the agent confirmed and no tool had, in a sentence; null if there are none. */
export function unprovenOf({ claim_check: check }) {
  const claims = check?.unproven ?? [];
  if (claims.length === 0) return null;
  const tools = [...new Set(claims.map(({ tool }) => tool).filter(Boolean))];
  const effects = claims.length === 1 ? 'an effect' : `${claims.length} effects`;
  return `The agent confirmed ${effects} that no tool had${tools.length ? ` (${tools.join(', ')})` : ''}.`;
}
