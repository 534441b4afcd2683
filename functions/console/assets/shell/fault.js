// Whose fault a failure is, in words; the API names the next step.

const KNOWN = { ours: 'Switchboard', configuration: 'Your configuration', service: 'The other service', caller: 'The caller', model: 'The model' };

export const FAULTS = Object.entries(KNOWN);

/** `{word, next}` of a failed execution; null if unknown. A newer version's fault keeps its name. */
export function faultOf({ fault, next_step: next }) {
  return fault ? { word: KNOWN[fault] ?? fault, next: next ?? '' } : null;
}
