// An execution's arguments beside the request that they would make now.

/** In the record, for values not kept whole. */
const HIDDEN = /\[(number|email|secret|redacted|ignored|not kept)\]|… \(cut:/;

/** By path: `recipients.0.to`. */
function leaves(value, path = '') {
  if (value === null || typeof value !== 'object') return [{ path, text: String(value ?? '') }];
  return Object.entries(value).flatMap(([name, inner]) => leaves(inner, path ? `${path}.${name}` : name));
}

export function isHidden(text) {
  return HIDDEN.test(text);
}

/** With the values that a person filled in, by path. */
export function filled(given, values) {
  const whole = structuredClone(given);
  for (const [path, text] of Object.entries(values)) {
    if (text === '') continue;
    const names = path.split('.');
    const last = names.pop();
    const at = names.reduce((inner, name) => inner?.[name], whole);
    if (at) at[last] = text;
  }
  return whole;
}

/**
 * `given` and `sent` as rows `{path, text, state}`. An argument is `used` if the request has it, `ignored` if the tool does not take it,
 * `hidden` if the record lacks it, else `absent`; a value of the request is `given`, `hidden` (from a hidden argument), or `own`.
 */
export function compared(given, shown, before = []) {
  const request = leaves(shown?.request ?? {});
  const ignored = shown?.ignored_arguments ?? [];
  const named = leaves(given).filter(({ path }) => path !== '');
  const has = (text) => text !== '' && request.some((row) => row.text === text || (text.length > 2 && row.text.includes(text)));
  const rows = named.map(({ path, text }) => {
    const top = path.split('.')[0];
    const state = ignored.includes(top) ? (before.includes(top) ? 'ignored' : 'newly-ignored') : isHidden(text) ? 'hidden' : has(text) ? 'used' : 'absent';
    return { path, text, state: shown?.request || state.endsWith('ignored') || state === 'hidden' ? state : 'used' };
  });
  const hidden = rows.filter(({ state }) => state === 'hidden').map(({ text }) => text);
  const texts = rows.filter(({ state }) => state === 'used').map(({ text }) => text);
  const from = (text) => texts.some((one) => one !== '' && (one === text || (one.length > 2 && text.includes(one))));
  return { given: rows, sent: request.filter(({ path }) => path !== '').map((row) => ({ ...row, state: hidden.includes(row.text) ? 'hidden' : from(row.text) ? 'given' : 'own' })) };
}

/** As sentences. */
export function differences({ given }, shown, execution) {
  const named = (state) => [...new Set(given.filter((row) => row.state === state).map(({ path }) => path.split('.')[0]))].join(', ');
  const says = [];
  if (shown.status === 'failed' && execution.status !== 'failed') says.push('Then it was sent; now it would not be.');
  if (named('newly-ignored')) says.push(`The tool does not take these arguments any more: ${named('newly-ignored')}.`);
  if (named('absent')) says.push(`Not in the request as they were given: ${named('absent')}.`);
  if (named('hidden')) says.push(`Hidden in the record: ${named('hidden')}. Fill them in below to see the request with them.`);
  return says;
}
