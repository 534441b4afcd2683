import assert from 'node:assert/strict';
import test from 'node:test';

import { asDryRun, conflictOf, differences, textOf, toolsIn, unsendable, withoutSecrets } from '../assets/automations/definitions.js';
import { lineOf, readJson } from '../assets/automations/json_text.js';
import { placed, placeOf, repairOf, unfilled, unreadTool, withFingerprint } from '../assets/automations/placing.js';
import { begunFrom, TEMPLATES } from '../assets/automations/templates.js';

const TEXT = `{
  "name": "Urgent \\"pumps\\"",
  "trigger_config": { "servce": "Slack", "filters": {"path": "event.txt", "op": "contains"} },
  "actions": [
    { "id": "tell", "tool": "slack_post_message", "parameters": { "channel": "", "text": "{{event.txt | upper}} by {{ event.txt }} of {{event.txts}}" } }
  ],
  "fingerprints": { "old_tool": "x", "slack_post_message": "old" }
}
`;

const at = (pointer, text = TEXT) => {
  const { start, end } = readJson(text).parts.get(pointer);
  return text.slice(start, end);
};
const changed = (text, { start, end, text: by }) => text.slice(0, start) + by + text.slice(end);
const repaired = (diagnostic, text = TEXT) => {
  const change = repairOf(diagnostic, readJson(text), text);
  return change && JSON.parse(changed(text, change));
};

test('each part of a text has its place', () => {
  const { value, parts, problem } = readJson(TEXT);
  assert.deepEqual([problem, value], [null, JSON.parse(TEXT)]);
  assert.deepEqual([at('/name'), at('/actions/0/id'), at('/trigger_config/filters/op')], ['"Urgent \\"pumps\\""', '"tell"', '"contains"']);
  const { name } = parts.get('/trigger_config/servce');
  assert.deepEqual([TEXT.slice(name.start, name.end), lineOf(TEXT, name.start)], ['"servce"', { line: 3, column: 23 }]);
  assert.ok(readJson('{"a/b": {"c~d": 1}}').parts.has('/a~1b/c~0d'));
  assert.equal(at('/a', '{"a": 1, "a": 2}'), '2', 'of a name that stands twice the later one counts');
});

test('a text is JSON exactly if the browser says so, and has the same value', () => {
  const texts = [TEXT, '{}', '[1, -2.5e3, true, null, "\\u00e9"]', '"x"', ' 7 ', '', '{', '}', ']', '{"a"}', '{"a":}', '{"a":1,}', '{,}', '[1 2]', '[1,,2]', '{"a":1}}', '"\n"', '"\t"', '"\\x"', '01', '+1', 'tru', "{'a':1}", '{"a"::1}', '{a:1}', '[:1]', '{{', '[[', '{[}]', '{"a":[}', '\u00a01', '{"a":1}\u00a0', '[{"a":[{"b":"'];
  // One character more, or fewer, anywhere.
  const marks = ['"', ',', ':', '{', '}', '[', ']', '\\', '\n', 'x', ' '];
  for (let place = 0; place < TEXT.length; place += 3) {
    texts.push(TEXT.slice(0, place), TEXT.slice(0, place) + TEXT.slice(place + 1), TEXT.slice(0, place) + marks[place % marks.length] + TEXT.slice(place));
  }
  for (const text of texts) {
    let value;
    let isJson = true;
    try {
      value = JSON.parse(text);
    } catch {
      isJson = false;
    }
    const read = readJson(text);
    assert.equal(read.problem === null, isJson, JSON.stringify(text));
    if (isJson) assert.deepEqual(read.value, value);
    else assert.ok(read.problem.at >= 0 && read.problem.at <= text.length && /\.$/.test(read.problem.message), JSON.stringify(text));
  }
});

test('an unfinished text says where, and keeps the places of the rest', () => {
  const told = (text) => {
    const { at, message } = readJson(text).problem;
    return [lineOf(text, at).line, message];
  };
  assert.deepEqual(told('{\n  "a": "one,\n  "b": 2\n}'), [2, 'This text has no quote at its end.']);
  assert.deepEqual(told('{\n  "a": 1\n  "b": 2\n}'), [2, 'A comma is missing here.']);
  assert.deepEqual(told('{\n  "a": 1,\n}'), [2, 'Nothing follows this comma. Leave it out.']);
  assert.deepEqual(told('{\n  "a": [1, 2\n}'), [2, 'This [ has no ].']);
  assert.deepEqual(told('{\n  "a":\n}'), [2, 'The value of this name is missing.']);
  assert.deepEqual(told('{\n  a: 1\n}'), [2, 'A name in double quotes is missing here.']);
  assert.deepEqual(told('{"a": yes}'), [1, 'This is no value. A text stands in double quotes.']);
  const text = '{\n  "name": "x,\n  "actions": [{"id": "a", "tool": }, {"id": "b"}]';
  const { value, parts } = readJson(text);
  assert.deepEqual([value.actions.map(({ id }) => id), lineOf(text, parts.get('/actions/1/id').start).line], [['a', 'b'], 3]);
  assert.ok(readJson('['.repeat(100_000)).problem, 'a text without end is read all the same');
});

test('a mistake stands at its part, at the name where the name is wrong, and a missing part where it belongs', () => {
  const read = readJson(TEXT);
  const there = (pointer, code = '') => {
    const { start, end, line } = placeOf({ pointer, code }, read, TEXT);
    return [line, TEXT.slice(start, end)];
  };
  assert.deepEqual(there('/trigger_config/filters/path'), [3, '"event.txt"']);
  assert.deepEqual(there('/trigger_config/servce', 'unknown_field'), [3, '"servce"']);
  assert.deepEqual(there('/trigger_config/event_type', 'missing_field'), [3, '"trigger_config"']);
  assert.deepEqual([there('/actions/0/condition/value'), there('/description'), there('')], [[5, '{'], [1, '{'], [1, '{']]);
  assert.deepEqual(placeOf({ pointer: '/a', code: '' }, readJson(''), ''), { start: 0, end: 0, line: 1, column: 1 });
  const sorted = placed([['warning', '/name'], ['error', '/actions'], ['error', '/trigger_config']].map(([severity, pointer]) => ({ severity, pointer, code: '' })), read, TEXT);
  assert.deepEqual(sorted.map(({ pointer }) => pointer), ['/trigger_config', '/actions', '/name']);
});

test('a repair changes the name, the value, or the path in its templates, and nothing else', () => {
  assert.deepEqual(Object.keys(repaired({ pointer: '/trigger_config/servce', code: 'unknown_field', did_you_mean: 'service' }).trigger_config), ['service', 'filters']);
  assert.equal(repaired({ pointer: '/trigger_config/filters/path', code: 'unknown_path', found: 'event.txt', did_you_mean: 'event.text' }).trigger_config.filters.path, 'event.text');
  const text = repaired({ pointer: '/actions/0/parameters/text', code: 'unknown_path', found: '{{event.txt}}', did_you_mean: 'event.text' }).actions[0].parameters.text;
  assert.equal(text, '{{event.text | upper}} by {{ event.text }} of {{event.txts}}');
  assert.deepEqual(repaired({ pointer: '/fingerprints/old_tool', code: 'unused_fingerprint' }).fingerprints, { slack_post_message: 'old' });
  const last = '{"fingerprints": {\n  "a": "1",\n  "b": "2"\n}}';
  assert.deepEqual(repaired({ pointer: '/fingerprints/b', code: 'unused_fingerprint' }, last), { fingerprints: { a: '1' } });
  assert.equal(repaired({ pointer: '/actions/0/tool', code: 'unknown_tool' }), null, 'nothing is guessed');
  assert.equal(repaired({ pointer: '/gone', code: 'unknown_tool', did_you_mean: 'x' }), null);
  assert.equal(repaired({ pointer: '/actions/0/parameters/channel', code: 'unknown_path', found: '{{a}}', did_you_mean: 'b' }), null, 'the text has changed since');
});

test('the fingerprint of a tool is written where the definition has it', () => {
  const read = readJson(TEXT);
  assert.equal(unreadTool({ pointer: '/actions/0/tool', code: 'schema_not_read' }, read, TEXT), 'slack_post_message');
  assert.equal(unreadTool({ pointer: '/fingerprints/slack_post_message', code: 'tool_changed' }, read, TEXT), 'slack_post_message');
  assert.equal(unreadTool({ pointer: '/actions/0/tool', code: 'unknown_tool' }, read, TEXT), null);
  const written = (tool, text) => JSON.parse(changed(text, withFingerprint(tool, 'f"1', readJson(text), text)));
  assert.equal(written('slack_post_message', TEXT).fingerprints.slack_post_message, 'f"1');
  assert.equal(written('wget', TEXT).fingerprints.wget, 'f"1');
  for (const text of ['{}', '{"name": "x"}', '{\n  "name": "x"\n}', '{\n  "fingerprints": {}\n}', '{\n  "fingerprints": {\n    "a": "b"\n  }\n}']) {
    assert.equal(written('wget', text).fingerprints.wget, 'f"1', text);
  }
});

test('a dry run sends the text as it was typed', () => {
  const sent = (text) => asDryRun(text, readJson(text));
  assert.deepEqual([sent('{}'), sent(' {"a": 1, "a": 2}')], ['{"dry_run":true}', ' {"dry_run":true,"a": 1, "a": 2}']);
  const own = (text) => unsendable(readJson(text), text);
  assert.deepEqual([own('{"a": 1}'), own('{"a" 1}').place.line, own('[]').message, own('{\n"dry_run": true}').place.line], [null, 1, 'A definition is an object.', 2]);
});

test('secrets of a draft are not kept, templates are', () => {
  const kept = JSON.parse(withoutSecrets('{"api_key": "sk-1", "a": [{"auth_token": "{{x}}", "Token": "t", "pin": 7, "secret": {"b": "c"}}]}'));
  assert.deepEqual(kept, { api_key: '', a: [{ auth_token: '{{x}}', Token: 't', pin: 7, secret: { b: 'c' } }] });
  assert.equal(withoutSecrets('{"password": "half'), '{"password": ""');
});

test('a stored definition is read in the order in which people think', () => {
  const text = textOf({ actions: [{ tool: 't', parameters: { b: 1 }, id: 'a' }], fingerprints: {}, name: 'n', trigger_type: 'manual', zeta: 1 });
  assert.deepEqual([Object.keys(JSON.parse(text)), Object.keys(JSON.parse(text).actions[0])], [['name', 'trigger_type', 'actions', 'fingerprints', 'zeta'], ['id', 'tool', 'parameters']]);
});

test('the tools of a definition are found wherever it names them', () => {
  const nested = { trigger_config: { source_tool: 's' }, actions: [{ tool: 'a' }, { for_each: '{{x}}', steps: [{ tool: 'b' }, { tool: 'a' }] }, null], tools: ['c', ''] };
  assert.deepEqual([toolsIn(nested), toolsIn(null)], [['s', 'a', 'b', 'c'], []]);
});

test('a version that another person saved is a conflict, a pause is none', () => {
  const base = { version: 2, revision: 5 };
  const of = (version, revision) => conflictOf(base, { version, revision });
  assert.deepEqual([of(2, 5), of(2, 6), of(3, 7), of(2, 4), conflictOf(null, { version: 3, revision: 7 }), conflictOf(base, null)], ['none', 'state', 'content', 'none', 'none', 'none']);
});

test('differences are listed as the API lists them', () => {
  const from = { name: 'a', actions: [{ id: 'x', tool: 't' }, { id: 'y' }], gone: 1 };
  const to = { actions: [{ tool: 't', id: 'z' }], name: 'a', 'new/one': [] };
  assert.deepEqual(differences(from, to), [
    { pointer: '/actions/0/id', change: 'changed', from: 'x', to: 'z' },
    { pointer: '/actions/1', change: 'removed', from: { id: 'y' } },
    { pointer: '/gone', change: 'removed', from: 1 },
    { pointer: '/new~1one', change: 'added', to: [] },
  ]);
  assert.deepEqual(differences(from, structuredClone(from)), []);
});

test('a template brings the fingerprints that are known, and its ids are to be filled in', () => {
  for (const template of TEMPLATES) {
    const text = textOf(begunFrom(template, { slack_post_message: 'f', wget: 'built-in' }, 'Europe/Madrid'));
    const value = JSON.parse(text);
    assert.deepEqual(Object.keys(value.fingerprints), template.tools.filter((tool) => tool !== 'llm_transform' && tool !== 'current_time'), template.id);
    assert.deepEqual(toolsIn(value), template.tools, template.id);
    const ids = unfilled(readJson(text), text).map(({ pointer }) => pointer);
    assert.ok(template.id === 'prompt' ? ids.length === 0 : ids.length === 1 && ids[0].endsWith('/parameters/channel'), `${template.id}: ${ids}`);
  }
});
