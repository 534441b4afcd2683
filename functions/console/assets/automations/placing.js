// Where a mistake stands in the text, and the change that repairs it.

import { escaped, lineOf, parsed } from './json_text.js';

/** Codes about the name of a member. */
const NAMED = ['unknown_field', 'unknown_parameter', 'duplicate_field', 'unused_fingerprint'];
/** Codes of a tool whose fingerprint is missing or old. */
const UNREAD = ['schema_not_read', 'tool_changed'];

const ARGUMENT = /\/(parameters|params|tool_params)\//;

/** `{start, end, line, column}` of a mistake. One about a missing part stands at the part that lacks it. */
export function placeOf({ pointer, code }, { parts }, text) {
  let at = pointer;
  while (!parts.has(at) && at !== '') at = at.slice(0, at.lastIndexOf('/'));
  const part = parts.get(at) ?? { start: 0, end: 0, name: null };
  const opens = '{['.includes(text[part.start] ?? ' ');
  const whole = at === pointer && NAMED.includes(code) ? part.name : opens ? (part.name ?? { start: part.start, end: part.start + 1 }) : part;
  const { start, end } = whole ?? part;
  return { start, end, ...lineOf(text, start) };
}

/** The mistakes with their places, errors first, each severity from the top. */
export function placed(diagnostics, read, text) {
  const all = diagnostics.map((diagnostic) => ({ ...diagnostic, place: placeOf(diagnostic, read, text) }));
  const rank = ({ severity }) => (severity === 'error' ? 0 : 1);
  return all.sort((one, other) => rank(one) - rank(other) || one.place.start - other.place.start);
}

/** The change `{word, start, end, text}` that repairs a mistake, or null where the author must decide. */
export function repairOf({ pointer, code, did_you_mean: meant, found }, { parts }, text) {
  const part = parts.get(pointer);
  if (!part) return null;
  if (code === 'unused_fingerprint') return part.name && { word: 'Remove it', ...withoutMember(part, text) };
  if (meant === undefined) return null;
  if (NAMED.includes(code)) return part.name && { word: `Rename it to ${meant}`, ...part.name, text: JSON.stringify(meant) };
  if (part.first !== null) return null;
  const value = parsed(text.slice(part.start, part.end));
  const repaired = typeof value === 'string' && String(found).startsWith('{{') ? withPath(value, found.slice(2, -2).trim(), meant) : meant;
  return repaired === value ? null : { word: `Write ${meant}`, start: part.start, end: part.end, text: JSON.stringify(repaired) };
}

/** The text with another path in its templates. */
function withPath(value, path, meant) {
  const written = path.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const whole = new RegExp(`(?<![\\w.\\]"'])${written}(?![\\w.["'])`, 'g');
  return value.replaceAll(/\{\{.*?\}\}/gs, (template) => template.replaceAll(whole, () => meant));
}

/** The tool that a mistake is about, if reading it would help. */
export function unreadTool({ pointer, code }, { parts }, text) {
  const part = UNREAD.includes(code) ? parts.get(pointer) : null;
  if (!part) return null;
  const name = part.name && code === 'tool_changed' ? part.name : part;
  const tool = parsed(text.slice(name.start, name.end));
  return typeof tool === 'string' ? tool : null;
}

/** The change that writes a tool's fingerprint. */
export function withFingerprint(tool, fingerprint, { parts }, text) {
  const raw = JSON.stringify(fingerprint);
  const old = parts.get(`/fingerprints/${escaped(tool)}`);
  if (old) return { start: old.start, end: old.end, text: raw };
  const member = `${JSON.stringify(tool)}: ${raw}`;
  const all = parts.get('/fingerprints');
  if (all && text[all.start] === '{') return withMember(all, text, member);
  const root = parts.get('');
  return root && !all ? withMember(root, text, `"fingerprints": { ${member} }`) : null;
}

function withMember({ start, end, first, last }, text, member) {
  const lineBefore = (at) => text.slice(text.lastIndexOf('\n', at - 1) + 1, at);
  if (first === null) {
    const [indent] = /^[ \t]*/.exec(lineBefore(start));
    return { start: start + 1, end: end - 1, text: `\n${indent}  ${member}\n${indent}` };
  }
  const before = lineBefore(first);
  return { start: last, end: last, text: before.trim() === '' ? `,\n${before}${member}` : `, ${member}` };
}

function withoutMember({ name, end }, text) {
  const [after] = /^\s*,\s*/.exec(text.slice(end)) ?? [''];
  if (after) return { start: name.start, end: end + after.length, text: '' };
  const before = text.slice(0, name.start).trimEnd();
  return { start: before.length - Number(before.endsWith(',')), end, text: '' };
}

/** Warnings about arguments that are still to be filled in: the API takes an empty text, too. */
export function unfilled({ parts }, text) {
  const empty = [...parts].filter(([pointer, { start, end }]) => ARGUMENT.test(pointer) && text.slice(start, end) === '""');
  return empty.map(([pointer]) => ({ severity: 'warning', code: 'empty', pointer, message: 'This text is empty.', hint: 'Fill it in, or leave it out.' }));
}
