// Definitions as texts: in the order of reading, as a dry run, without secrets, and compared.

import { SECRET } from '../shell/schema.js';
import { escaped, lineOf, parsed, readJson } from './json_text.js';

/** The order of members; others follow. */
const ORDER = [
  'name', 'description', 'trigger_type', 'trigger_config', 'service', 'event_type', 'params', 'filters', 'source_tool', 'tool_params', 'interval', 'day_of_week', 'time_of_day', 'run_at', 'timezone',
  'id', 'tool', 'parameters', 'condition', 'path', 'op', 'value', 'operator', 'clauses', 'output_as', 'approval', 'prompt', 'system_prompt', 'tools', 'actions', 'variables', 'fingerprints',
];

/** A stored definition as a text to edit. */
export function textOf(definition) {
  return `${JSON.stringify(ordered(definition), null, 2)}\n`;
}

function ordered(value) {
  if (Array.isArray(value)) return value.map(ordered);
  if (value === null || typeof value !== 'object') return value;
  const rank = (name) => (ORDER.indexOf(name) + ORDER.length + 1) % (ORDER.length + 1);
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => rank(one) - rank(other)).map(([name, inner]) => [name, ordered(inner)]));
}

/** The text as the body of a dry run: as it was typed, so that the API sees fields that stand twice. */
export function asDryRun(text, { parts }) {
  const { start, first } = parts.get('');
  return `${text.slice(0, start + 1)}"dry_run":true${first === null ? '' : ','}${text.slice(start + 1)}`;
}

/** A mistake that the API is not asked about; null if it can judge the text. */
export function unsendable({ value, parts, problem }, text) {
  const told = (at, message, hint) => ({ severity: 'error', code: 'no_json', pointer: '', message, hint, place: { start: at, end: at + 1, ...lineOf(text, at) } });
  if (problem) return told(problem.at, problem.message, '');
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return told(parts.get('').start, 'A definition is an object.', 'Put { and } around it.');
  const tried = parts.get('/dry_run');
  return tried ? told(tried.name.start, 'A saved definition has no dry_run.', 'Leave it out: the text is tried by itself.') : null;
}

/** The text as it is kept in the tab: texts of members that are secrets by name are empty, unless they are templates. */
export function withoutSecrets(text) {
  const { parts } = readJson(text);
  const isSecret = ({ start, end, name }) => name && text[start] === '"' && SECRET.test(parsed(text.slice(name.start, name.end)) ?? '') && !text.slice(start, end).includes('{{');
  const secrets = [...parts.values()].filter(isSecret).sort((one, other) => other.start - one.start);
  return secrets.reduce((kept, { start, end }) => `${kept.slice(0, start)}""${kept.slice(end)}`, text);
}

/** The names of the tools in a definition, each once. */
export function toolsIn(value) {
  const names = new Set();
  const look = (inner, name) => {
    if (typeof inner === 'string' && ['tool', 'tools', 'source_tool'].includes(name)) names.add(inner);
    if (Array.isArray(inner)) inner.forEach((item) => look(item, name));
    else if (inner !== null && typeof inner === 'object') Object.entries(inner).forEach(([member, of]) => look(of, member));
  };
  look(value, '');
  return [...names].filter((name) => name !== '');
}

/** The differences of two values: `{pointer, change, from, to}`, as the API lists those of two versions. */
export function differences(from, to, pointer = '') {
  if (JSON.stringify(from) === JSON.stringify(to)) return [];
  if (from === undefined) return [{ pointer, change: 'added', to }];
  if (to === undefined) return [{ pointer, change: 'removed', from }];
  const both = [from, to];
  const areLists = both.every(Array.isArray);
  if (!areLists && !both.every((value) => value !== null && typeof value === 'object' && !Array.isArray(value))) return [{ pointer, change: 'changed', from, to }];
  const names = [...new Set(both.flatMap(Object.keys))];
  return names.flatMap((name) => differences(from[name], to[name], `${pointer}/${escaped(name)}`));
}

/**
 * What a version that another person saved means for a text that began with `base`: `none`, `state` (it was only activated or paused), or
 * `content`.
 */
export function conflictOf(base, newest) {
  if (!base || !newest || newest.revision <= base.revision) return 'none';
  return newest.version === base.version ? 'state' : 'content';
}
