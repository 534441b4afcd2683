// A form made from a JSON Schema.

import { html, useEffect, useRef, useState } from '../htm-preact.js';
import { Icon } from './icons.js';
import { TextInput } from './text_input.js';
import { answerTo } from './unreachable.js';
import { begun, halves, parsed, problemsAt, resolved, SECRET, turned, typeIn, typeOf, variantsOf, wordsOf } from './schema.js';

/** Longer texts get several lines. */
const LINE = 200;

let known = null;

/** Of the API's bodies, by name. */
export function useSchemas() {
  const [schemas, come] = useState(known);
  const [error, fail] = useState(null);
  const load = async () => {
    try {
      const answer = await answerTo('console/forms.json');
      if (!answer.ok) throw new Error(`The form could not be loaded (${answer.status}).`);
      known = await answer.json();
      come(known);
    } catch (cause) {
      fail(cause);
    }
  };
  useEffect(() => {
    if (!known) load();
  }, []);
  return { schemas, error, again: load };
}

/**
 * `schema`: a name or a schema; `words`: `{labels, variants}` by name; `choices`: lists of `{value, word}` by member, or hooks that
 * read one when its field is shown.
 * Lists in `suggestions` allow other values. Members: `first` come first, `hidden` are left out, and `without` are left out at any depth;
 * `unfolded` shows all at once.
 */
export function Form({ schemas, schema, value, onChange, problems = [], words = {}, choices = {}, suggestions = {}, first = [], hidden = [], without = [], unfolded = false, disabled = false, name = 'form' }) {
  const told = { known: schemas, without, problems, words, choices, suggestions, unfolded, disabled, form: name };
  const whole = resolved(typeof schema === 'string' ? { $ref: `#/${schema}` } : schema, schemas);
  return html`<div class="made"><${Members} ...${told} schema=${whole} path=${[]} value=${value ?? {}} onChange=${onChange} first=${first} hidden=${hidden} /></div>`;
}

/** For every part of a form. */
const common = ({ known, without, problems, words, choices, suggestions, unfolded, disabled, form }) => ({ known, without, problems, words, choices, suggestions, unfolded, disabled, form });

/** The first and the required ones; the others behind a line that opens. */
function Members({ schema, value, onChange, path, first = [], hidden = [], ...all }) {
  const told = common(all);
  const { properties = {}, required = [] } = schema;
  const names = Object.keys(properties).filter((name) => !hidden.includes(name) && !told.without.includes(name) && resolved(properties[name], told.known).const === undefined);
  const leads = (name) => required.includes(name) || first.includes(name);
  const place = (name) => (first.indexOf(name) + 1 || first.length + 1);
  const leading = names.filter(leads).sort((one, other) => place(one) - place(other));
  const others = names.filter((name) => !leads(name));
  const wrong = others.some((name) => problemsAt(told.problems, [...path, name]).length > 0);
  const field = (name) => html`<${Field} ...${told} key=${name} name=${name} schema=${properties[name]} path=${[...path, name]} value=${value[name]} required=${required.includes(name)} onChange=${(inner) => onChange(withMember(value, name, inner))} />`;
  // Few others stay open: a line to open would be longer.
  const folds = !told.unfolded && (others.length > 2 || (path.length === 0 && leading.length > 0 && others.length > 0));
  return html`<${Problems} id=${idOf(told.form, path)} of=${problemsAt(told.problems, path, names)} />
    ${leading.map(field)}
    ${!folds && others.map(field)}
    ${folds && html`<details class="further" open=${wrong || leading.length === 0}><summary>${path.length === 0 ? 'More settings' : 'More'}</summary>${others.map(field)}</details>`}`;
}

function withMember(value, name, inner) {
  const { [name]: _, ...rest } = value;
  return inner === undefined ? rest : { ...value, [name]: inner };
}

const idOf = (form, path) => [form, ...path].join('-');

function Field({ schema: given, name, value, onChange, path, required = false, label: said, ...all }) {
  const told = common(all);
  const { known, words, choices } = told;
  const schema = resolved(given, known);
  const options = choices[path.slice(-2).join('.')] ?? choices[name];
  const label = said ?? words.labels?.[path.slice(-2).join('.')] ?? words.labels?.[name] ?? schema.title ?? wordsOf(name);
  const id = idOf(told.form, path);
  const shared = { ...told, id, name, label, required, path, onChange, value };
  const choice = variantsOf(schema, known, value);
  if (options && typeIn(schema) === 'string') return html`<${Choice} ...${shared} schema=${schema} options=${options} />`;
  if (choice?.variants.length > 1) return html`<${Variants} ...${shared} schema=${schema} choice=${choice} />`;
  if (choice) return html`<${Field} ...${told} schema=${{ ...choice.variants[0].schema, description: schema.description ?? choice.variants[0].schema.description }} name=${name} path=${path} value=${value} required=${required} label=${label} onChange=${onChange} />`;
  if (schema.enum) return html`<${Choice} ...${shared} schema=${schema} options=${schema.enum.filter((option) => option !== null).map((option) => ({ value: option, word: words.variants?.[option] ?? wordsOf(option) }))} />`;
  const type = typeIn(schema);
  if (type === 'boolean') return html`<${Switch} ...${shared} schema=${schema} />`;
  if (type === 'array' && schema.items) return html`<${Items} ...${shared} schema=${schema} />`;
  if (type === 'object' && schema.properties) {
    return html`<${Group} ...${shared} schema=${schema}>
      ${required || value !== undefined ? html`<${Members} ...${told} schema=${schema} path=${path} value=${value ?? {}} onChange=${onChange} />` : html`<button type="button" class="btn" id=${id} disabled=${told.disabled} onClick=${() => onChange(begun(schema, known) ?? {})} aria-label=${`Set ${label}`}>Set</button>`}
      ${!required && value !== undefined && html`<button type="button" class="btn bare" disabled=${told.disabled} onClick=${() => onChange(undefined)} aria-label=${`Remove ${label}`}>Remove</button>`}<//>`;
  }
  if (type === 'object' && typeof schema.additionalProperties === 'object') return html`<${Named} ...${shared} schema=${schema} />`;
  if (type === 'string' || type === 'number') return html`<${Line} ...${shared} schema=${schema} type=${type} />`;
  return html`<${Free} ...${shared} schema=${schema} />`;
}

/** Of a control, with its help and problems. */
function described({ id, schema, path, problems, required, disabled }) {
  const wrong = problemsAt(problems, path).length > 0;
  const by = [halves(schema.description)[0] && `${id}-help`, wrong && `${id}-problems`].filter(Boolean).join(' ');
  return { id, disabled, 'aria-describedby': by || null, 'aria-invalid': wrong ? 'true' : null, 'aria-required': required ? 'true' : null };
}

function Around({ id, label, required, schema, path, problems, children }) {
  return html`<div class="field" data-field=${path.join('.')}>
    <label for=${id}>${label}${required && html` <span class="remark">required</span>`}</label>
    <${Help} id=${id} of=${schema.description} />
    ${children}
    <${Problems} id=${id} of=${problemsAt(problems, path)} />
  </div>`;
}

function Group({ id, label, required, schema, path, problems, children, own = false }) {
  return html`<fieldset class="field" data-field=${path.join('.')}>
    <legend>${label}${required && html` <span class="remark">required</span>`}</legend>
    <${Help} id=${id} of=${schema.description} />
    ${children}
    ${own && html`<${Problems} id=${id} of=${problemsAt(problems, path, own)} />`}
  </fieldset>`;
}

function Help({ id, of }) {
  const [short, rest] = halves(of);
  if (!short) return null;
  return html`<p class="help" id="${id}-help"><${Coded} text=${short} /></p>${rest && html`<details class="help"><summary>More about it</summary><p><${Coded} text=${rest} /></p></details>`}`;
}

/** Backticks become code. */
function Coded({ text }) {
  return text.split('`').map((part, place) => (place % 2 === 1 ? html`<code>${part}</code>` : part));
}

function Problems({ id, of }) {
  if (of.length === 0) return null;
  return html`<p class="problem" id="${id}-problems" data-problem><${Icon} name="bad" /><span>${of.join('; ')}</span></p>`;
}

function Line(shared) {
  const { schema, value, onChange, type, name, suggestions: { [name]: offered } } = shared;
  const list = offered && `${shared.id}-list`;
  const control = { ...described(shared), value: value ?? '', placeholder: schema.default === undefined ? null : String(schema.default) };
  if (type === 'number') {
    const step = [schema.type].flat().includes('integer') ? 1 : 'any';
    return html`<${Around} ...${shared}><input type="number" ...${control} min=${schema.minimum} max=${schema.maximum} step=${step} onInput=${({ target }) => onChange(target.value === '' ? undefined : Number(target.value))} /><//>`;
  }
  const onInput = ({ target }) => onChange(target.value === '' ? undefined : target.value);
  if (schema.writeOnly || SECRET.test(name)) return html`<${Around} ...${shared}><input type="password" autocomplete="new-password" spellcheck=${false} ...${control} onInput=${onInput} /><//>`;
  if (schema.maxLength > LINE) return html`<${Around} ...${shared}><textarea rows="3" dir="auto" ...${control} maxlength=${schema.maxLength} onInput=${onInput}></textarea><//>`;
  return html`<${Around} ...${shared}><input type="text" autocomplete="off" dir="auto" ...${control} list=${list} maxlength=${schema.maxLength} onInput=${onInput} />
    ${offered && html`<datalist id=${list}>${offered.map(({ value }) => html`<option key=${value} value=${value} />`)}</datalist>`}<//>`;
}

function Choice(shared) {
  const { value, onChange, options: given, required } = shared;
  const options = typeof given === 'function' ? given() : given;
  const missing = value !== undefined && !options.some((option) => option.value === value);
  return html`<${Around} ...${shared}><select ...${described(shared)} value=${value ?? ''} onChange=${({ target }) => onChange(target.value === '' ? undefined : target.value)}>
    <option value="">${required ? 'Choose…' : 'Not set'}</option>
    ${missing && html`<option value=${value}>${value}</option>`}
    ${options.map((option) => html`<option key=${option.value} value=${option.value} disabled=${option.more}>${option.word}</option>`)}
  </select><//>`;
}

function Switch(shared) {
  const { id, label, schema, path, problems, value, onChange } = shared;
  return html`<div class="field switch" data-field=${path.join('.')}>
    <label for=${id}><input type="checkbox" ...${described(shared)} checked=${value ?? schema.default ?? false} onChange=${({ target }) => onChange(target.checked)} /> ${label}</label>
    <${Help} id=${id} of=${schema.description} /><${Problems} id=${id} of=${problemsAt(problems, path)} />
  </div>`;
}

/** A choice, and the chosen form below it. */
function Variants(shared) {
  const { id, label, schema, known, path, value, onChange, required, words, choice } = shared;
  const { variants, by } = choice;
  const isText = ({ schema: variant }) => variant.const === undefined && typeIn(variant) === 'string';
  const chosen = choice.chosen ?? (required ? (variants.find(isText) ?? null) : null);
  const choose = ({ target }) => {
    const variant = variants.find(({ name }) => name === target.value);
    onChange(variant && (turned(value, choice.chosen, variant, by, known) ?? (isText(variant) ? '' : undefined)));
  };
  const inner = chosen && resolved(chosen.schema, known);
  const { description: _, ...plain } = inner ?? {};
  const word = ({ name }) => words.variants?.[`${path.at(-1)}.${name}`] ?? words.variants?.[name] ?? WORDS[name] ?? wordsOf(name);
  return html`<${Group} ...${shared} own=${chosen && inner.const === undefined ? null : []}>
    <select ...${{ ...described(shared), id: `${id}-kind` }} aria-label=${label} value=${chosen?.name ?? ''} onChange=${choose}>
      ${(!required || !chosen) && html`<option value="">${required ? 'Choose…' : 'Not set'}</option>`}
      ${variants.map((variant) => html`<option key=${variant.name} value=${variant.name}>${word(variant)}</option>`)}
    </select>
    ${chosen && inner.const === undefined && html`<${Inner} ...${shared} schema=${plain} value=${value} hidden=${by ? [by] : []} />`}
  <//>`;
}

const WORDS = { string: 'One text', array: 'A list', object: 'Named values', any: 'Anything, as JSON', fixed: 'Always the same value', ai: 'The model fills it in', array_extendable: 'A list that the model may extend' };

function Inner({ schema, value, onChange, path, hidden, ...all }) {
  const told = common(all);
  if (schema.properties) return html`<div class="inner"><${Members} ...${told} schema=${schema} path=${path} value=${value} onChange=${onChange} hidden=${hidden} /></div>`;
  return html`<div class="inner"><${Field} ...${told} schema=${schema} path=${path} value=${value} onChange=${onChange} required name=${path.at(-1)} label="Value" /></div>`;
}

/** A new row takes the focus. `keys`: each row keeps its key when another one is removed with `drop`. */
function useList(count) {
  const list = useRef(null);
  const before = useRef(count);
  const { current: made } = useRef({ keys: [], next: 0 });
  while (made.keys.length < count) made.keys.push((made.next += 1));
  made.keys.length = count;
  useEffect(() => {
    if (count > before.current) list.current?.lastElementChild?.querySelector('input, select, textarea')?.focus();
    before.current = count;
  }, [count]);
  return { list, keys: made.keys, drop: (place) => made.keys.splice(place, 1) };
}

function Items(shared) {
  const { schema, value = [], onChange, path, known, id, label, disabled, required } = shared;
  const { list, keys, drop } = useList(value.length);
  const at = (place) => ({ ...common(shared), path: [...path, place], name: place, required: true, label: `${label} ${place + 1}` });
  const without = (place) => {
    drop(place);
    const rest = value.filter((_, other) => other !== place);
    onChange(rest.length === 0 && !required ? undefined : rest);
    document.getElementById(`${id}-add`)?.focus();
  };
  return html`<${Group} ...${shared} own=${value.map((_, place) => String(place))}>
    <ol class="items" ref=${list}>${value.map((item, place) => html`<li key=${keys[place]}>
      <${Field} ...${at(place)} schema=${schema.items} value=${item === '' ? undefined : item} onChange=${(inner) => onChange(value.map((other, there) => (there === place ? textOr(inner) : other)))} />
      <button type="button" class="btn bare" disabled=${disabled} aria-label=${`Remove ${label} ${place + 1}`} onClick=${() => without(place)}>Remove</button></li>`)}</ol>
    <button type="button" class="btn" id="${id}-add" disabled=${disabled || value.length >= schema.maxItems} onClick=${() => onChange([...value, begun(schema.items, known) ?? ''])}>Add ${value.length > 0 ? 'another' : 'one'}</button>
  <//>`;
}

/** The person names the members. */
function Named(shared) {
  const { schema, value = {}, onChange, path, known, id, disabled } = shared;
  const names = Object.keys(value);
  const { list, keys, drop } = useList(names.length);
  const put = (entries) => onChange(entries.length > 0 ? Object.fromEntries(entries) : undefined);
  const renamed = (before, after) => put(Object.entries(value).map(([name, inner]) => [name === before ? after : name, inner]));
  const add = () => {
    let count = names.length + 1;
    while (names.includes(`name_${count}`)) count += 1;
    put([...Object.entries(value), [`name_${count}`, begun(schema.additionalProperties, known) ?? '']]);
  };
  const without = (gone, place) => {
    drop(place);
    put(Object.entries(value).filter(([other]) => other !== gone));
    document.getElementById(`${id}-add`)?.focus();
  };
  return html`<${Group} ...${shared} own=${names}>
    <ul class="items" ref=${list}>${Object.entries(value).map(([name, inner], place) => html`<li key=${keys[place]}>
      <div class="field"><label for="${id}-name-${place}">Name</label><${TextInput} id="${id}-name-${place}" disabled=${disabled} value=${name} onChange=${({ target }) => (target.value === '' || (names.includes(target.value) && target.value !== name) ? (target.value = name) : renamed(name, target.value))} /></div>
      <${Field} ...${common(shared)} schema=${schema.additionalProperties} path=${[...path, name]} name=${name} label=${`Value of ${name}`} required value=${inner === '' ? undefined : inner} onChange=${(changed) => put(Object.entries(value).map(([other, kept]) => [other, other === name ? textOr(changed) : kept]))} />
      <button type="button" class="btn bare" disabled=${disabled} aria-label=${`Remove ${name}`} onClick=${() => without(name, place)}>Remove</button></li>`)}</ul>
    <button type="button" class="btn" id="${id}-add" disabled=${disabled} onClick=${add}>Add ${names.length > 0 ? 'another' : 'one'}</button>
  <//>`;
}

/** An empty row stays. */
const textOr = (value) => (value === undefined ? '' : value);

/** A text, or any JSON. */
function Free(shared) {
  const { value, onChange } = shared;
  const typed = useRef(null);
  // Another value than the typed one: a draft was discarded, or merged with a newer version.
  if (typed.current?.value !== value) typed.current = null;
  const text = typed.current?.text ?? (typeOf(value) === 'string' ? value : value === undefined ? '' : JSON.stringify(value, null, 2));
  const onInput = ({ target }) => {
    typed.current = { text: target.value, value: parsed(target.value) };
    onChange(typed.current.value);
  };
  return html`<${Around} ...${shared}><textarea rows="2" dir="auto" spellcheck=${false} ...${described(shared)} value=${text} onInput=${onInput}></textarea><//>`;
}
