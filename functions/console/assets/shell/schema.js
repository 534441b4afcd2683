// JSON Schemas for forms: members, variants, first values, and the fields of problems.

/** In members' names. */
export const SECRET = /(^|_)(secret|token|password|api_key|bearer|pin)$/;

/** Follows references, merges `allOf`; a part counts before the schemas that it refers to. */
export function resolved(schema, known) {
  if (!schema || typeof schema !== 'object') return {};
  const { $ref, allOf = [], ...own } = schema;
  const parts = $ref ? [pointed($ref, known), ...allOf] : allOf;
  return [...parts.map((part) => resolved(part, known)), own].reduce(merged, {});
}

function pointed(reference, known) {
  return reference.slice(2).split('/').reduce((at, part) => at?.[part], known);
}

function merged(one, other) {
  const both = { ...one, ...other };
  if (one.required && other.required) both.required = [...new Set([...one.required, ...other.required])];
  if (one.properties && other.properties) {
    both.properties = { ...one.properties };
    for (const [name, schema] of Object.entries(other.properties)) {
      both.properties[name] = one.properties[name] ? { allOf: [one.properties[name], schema] } : schema;
    }
  }
  return both;
}

/** The names of members, at any depth, whose values are only written. */
export function secretsIn(schema, known, seen = new Set()) {
  if (!schema || typeof schema !== 'object' || seen.has(schema)) return [];
  seen.add(schema);
  const { $ref, properties = {} } = schema;
  const own = Object.keys(properties).filter((name) => resolved(properties[name], known).writeOnly);
  return [...own, ...[$ref && pointed($ref, known), ...Object.values(schema)].flatMap((inner) => secretsIn(inner, known, seen))];
}

/** As schemas name it. */
export function typeOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}

/** More digits than a number is sure to keep. */
const LONG = /(\d\D?){16}/;

/** The JSON that a person typed, else a text: also a number that would be rounded. */
export function parsed(text) {
  if (text === '') return undefined;
  try {
    const value = JSON.parse(text);
    return typeof value === 'number' && LONG.test(text) && String(value) !== text ? text : value;
  } catch {
    return text;
  }
}

/** Besides null; undefined if several are allowed. */
export function typeIn({ type, properties, additionalProperties, items, enum: among }) {
  const types = [type ?? []].flat().filter((known) => known !== 'null');
  if (types.length === 1) return types[0] === 'integer' ? 'number' : types[0];
  if (properties || additionalProperties) return 'object';
  if (items) return 'array';
  return among ? 'string' : undefined;
}

const listed = (schema) => (schema?.const === undefined ? schema?.enum?.filter((value) => value !== null) : [schema.const]);

/**
 * The variants of a value, `{name, schema}`, or null for a single form. Member `by` tells them apart. A variant without it
 * is a short form, offered only to a value that has it.
 */
export function variantsOf(schema, known, value) {
  const { oneOf, anyOf, ...base } = schema;
  const options = (oneOf ?? anyOf ?? []).map((option) => resolved(option, known)).filter(({ type }) => type !== 'null');
  if (options.length === 0) return null;
  const telling = (name) => {
    const lists = options.map((option) => listed(resolved(option.properties?.[name], known))).filter(Boolean);
    return lists.length > 1 && new Set(lists.flat()).size === lists.flat().length;
  };
  const by = options.flatMap(({ properties }) => Object.keys(properties ?? {})).find(telling) ?? null;
  // Indistinguishable variants beside members are conditions.
  if (by === null && base.properties) return null;
  const all = options.map((option) => {
    const { oneOf: inner, ...rest } = base;
    const whole = merged(rest, option);
    const values = by && listed(resolved(option.properties?.[by], known));
    return { name: String(values?.[0] ?? option.const ?? option.title ?? typeIn(option) ?? 'any'), values, short: by !== null && !values, schema: whole };
  });
  const fits = ({ values, short, schema: { const: only, ...of } }) => {
    if (values) return typeOf(value) === 'object' && values.includes(value[by]);
    if (only !== undefined) return value === only;
    if (typeIn(of) === undefined) return !short && value !== undefined;
    return typeIn(of) === typeOf(value) && (of.additionalProperties !== false || Object.keys(value).every((name) => of.properties?.[name]));
  };
  const chosen = value === undefined ? null : (all.find(fits) ?? null);
  const variants = all.filter((variant) => !variant.short || variant === chosen);
  return { by, variants, chosen };
}

/** A required part's first value; undefined if a person has to give it. */
export function begun(schema, known) {
  const whole = resolved(schema, known);
  if (whole.const !== undefined) return whole.const;
  const choice = variantsOf(whole, known, undefined);
  if (choice) return begunAs(choice.variants[0], choice.by, known);
  const type = typeIn(whole);
  if (type === 'object') return members(whole, known, {});
  if (type === 'array') return whole.minItems > 0 ? [begun(whole.items, known)] : [];
  return undefined;
}

/** Of a variant. */
export function begunAs({ schema, values }, by, known) {
  const value = begun(schema, known);
  return by && values ? { ...value, [by]: values[0] } : value;
}

/** Of the variant `to`, with the members of `value` that both have alike. If no member tells them apart, its empty ones do. */
export function turned(value, from, to, by, known) {
  const begins = begunAs(to, by, known);
  const { properties = {}, required = [] } = to.schema;
  for (const name in properties) {
    if (!by && required.includes(name)) begins[name] ??= '';
    if (JSON.stringify(from?.schema.properties?.[name]) === JSON.stringify(properties[name])) begins[name] = value[name] ?? begins[name];
  }
  return begins;
}

function members({ properties = {}, required = [] }, known, value) {
  for (const name of required) {
    const begins = begun(properties[name], known);
    if (begins !== undefined) value[name] = begins;
  }
  return value;
}

/** Without empty members. */
export function cleaned(value) {
  if (Array.isArray(value)) return value.map((item) => (item === undefined ? '' : cleaned(item)));
  if (typeOf(value) !== 'object') return value;
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined && inner !== '').map(([name, inner]) => [name, cleaned(inner)]));
}

/** Different members, null for removed ones. */
export function changes(before, after) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const differs = (name) => JSON.stringify(before[name] ?? null) !== JSON.stringify(after[name] ?? null);
  return Object.fromEntries(names.filter(differs).map((name) => [name, after[name] ?? null]));
}

/** The value `theirs` with the changes that lead from `base` to `mine`, where an empty text in place of no text is none. */
export function rebased(base, mine, theirs) {
  if ((mine === '' && typeof base !== 'string') || JSON.stringify(mine ?? null) === JSON.stringify(base ?? null)) return theirs;
  const values = [base, mine, theirs];
  if (!values.every((value) => value !== null && typeof value === 'object' && !Array.isArray(value))) return mine;
  // Members of two variants would be neither.
  if (new Set(values.map(({ mode, type, do: does }) => `${mode} ${type} ${does}`)).size > 1) return mine;
  const names = new Set(values.flatMap(Object.keys));
  return Object.fromEntries([...names].map((name) => [name, rebased(...values.map((value) => value[name]))]).filter(([, value]) => value !== undefined));
}

/** Of `label_of_it` or `labelOfIt`. */
export function wordsOf(name) {
  const words = String(name).replace(/([a-z])([A-Z])/g, '$1 $2').replaceAll(/[_-]/g, ' ').toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1).replace(/\b(url|id|api|sid|sms|ai|sip)\b/g, (word) => word.toUpperCase());
}

/** Of `recipients.fixedValues[0]` or `/recipients/fixedValues/0`. */
export function partsOf(field) {
  return String(field).split(/[.[\]/]+/).filter(Boolean);
}

const within = (path, parts) => path.every((part, place) => parts[place] === String(part));

/** The problems at `path`, and deeper problems outside its `members`. */
export function problemsAt(problems, path, members = null) {
  return problems
    .filter(({ field }) => {
      const parts = partsOf(field);
      if (!within(path, parts)) return false;
      return parts.length === path.length || members === null || !members.includes(parts[path.length]);
    })
    .map(({ field, problem }) => {
      const below = partsOf(field).slice(path.length);
      return below.length > 0 ? `${below.join('.')} ${problem}` : problem;
    });
}

/** Readable at a glance. */
const GLANCE = 130;

/** Whole, or the first sentence and the rest. */
export function halves(description = '') {
  const text = description.replaceAll(/\s+/g, ' ').trim();
  if (text.length <= GLANCE) return [text, ''];
  const end = text.search(/[.:;] /);
  return end === -1 ? [text, ''] : [`${text.slice(0, end)}.`, text.slice(end + 2)];
}
