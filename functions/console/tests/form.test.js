import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { inParts } from '../assets/knowledge/tables.js';
import { refusal } from '../assets/shell/problems.js';
import { withNew, without } from '../assets/shell/rows.js';
import { begun, begunAs, changes, cleaned, halves, parsed, partsOf, problemsAt, rebased, resolved, SECRET, turned, typeIn, variantsOf, wordsOf } from '../assets/shell/schema.js';
import { argumentsOf, configOf } from '../assets/tools/configs.js';

const known = JSON.parse(readFileSync(new URL('../assets/forms.json', import.meta.url)));
const member = (name, field) => resolved(resolved({ $ref: `#/${name}` }, known).properties[field], known);

test('a schema has the members of all its parts, and every reference leads somewhere', () => {
  const sms = resolved({ $ref: '#/SmsConfig' }, known);
  assert.ok(['label', 'limits', 'recipients', 'text'].every((name) => name in sms.properties));
  assert.deepEqual(['type', 'label', 'from', 'text', 'recipients'].filter((name) => !sms.required.includes(name)), []);
  const references = [...JSON.stringify(known).matchAll(/"\$ref":"#\/(\w+)/g)].map(([, name]) => name);
  assert.deepEqual(references.filter((name) => !(name in known)), []);
});

test('variants are told apart by a member, and a short form is offered only to its value', () => {
  const names = (field, value) => variantsOf(member('SmsConfig', field), known, value).variants.map(({ name }) => name);
  assert.deepEqual(names('from'), ['called_number', 'specific_number']);
  assert.deepEqual(names('text'), ['fixed', 'ai']);
  assert.deepEqual(names('text', 'Hello'), ['string', 'fixed', 'ai']);
  assert.deepEqual(names('recipients'), ['fixed', 'ai', 'array_extendable']);
  assert.deepEqual(names('allowed_recipients'), ['caller_only', 'array']);
  const chosen = variantsOf(member('SmsConfig', 'text'), known, { mode: 'ai', prompt: 'What' }).chosen;
  assert.equal(chosen.name, 'ai');
  assert.equal(variantsOf(member('ApiRequestConfig', 'url'), known, undefined).by, 'mode');
  assert.equal(variantsOf(resolved({ $ref: '#/TransferCallConfig' }, known), known, undefined), null, 'conditions are no choice');
  const tools = variantsOf(resolved({ $ref: '#/ToolConfig' }, known), known, { type: 'apiRequest' });
  assert.deepEqual(tools.variants.map(({ name }) => name), ['sms', 'api_request', 'pipedream_action', 'transfer_call', 'place_call', 'query']);
  assert.equal(tools.chosen.name, 'api_request');
  const target = variantsOf(member('TransferCallConfig', 'target'), known, { type: 'sip' });
  assert.deepEqual([target.by, target.chosen.name], ['type', 'sip']);
});

test('a value begins with its required parts', () => {
  assert.deepEqual(begun({ $ref: '#/SmsConfig' }, known), { type: 'sms', from: { type: 'called_number' }, text: { mode: 'fixed' }, recipients: { mode: 'fixed' } });
  const { by, variants } = variantsOf(member('SmsConfig', 'from'), known, undefined);
  assert.deepEqual(begunAs(variants[1], by, known), { type: 'specific_number' });
  assert.deepEqual(begun({ $ref: '#/NewPhoneNumber' }, known), { twilio: {} });
  assert.deepEqual(begun({ type: 'array', items: { type: 'object', properties: { a: { const: 1 } }, required: ['a'] }, minItems: 1 }, {}), [{ a: 1 }]);
  assert.equal(typeIn({ type: ['integer', 'null'] }), 'number');
});

test('what is empty is not sent, and only what differs is', () => {
  assert.deepEqual(cleaned({ a: '', b: undefined, c: [{ d: '' }, ''], e: false, f: 0, g: null }), { c: [{}, ''], e: false, f: 0, g: null });
  assert.deepEqual(changes({ a: 1, b: { c: 2 }, d: 4 }, { a: 1, b: { c: 3 }, e: 5 }), { b: { c: 3 }, d: null, e: 5 });
});

test('a number that would be rounded is kept as it was typed', () => {
  const typed = ['', 'x', '"x"', '1.0', '-12.5e3', '9007199254740991', '1234567890123456789', '0.12345678901234567891'];
  assert.deepEqual(typed.map(parsed), [undefined, 'x', 'x', 1, -12500, 9007199254740991, '1234567890123456789', '0.12345678901234567891']);
});

test('the changes of a draft are made to the version that somebody else saved', () => {
  const base = { label: 'A', text: { mode: 'fixed', value: 'x' }, to: [1], gone: 1 };
  const mine = { label: 'B', text: { mode: 'fixed', value: 'y' }, to: [1], more: 2 };
  const theirs = { label: 'A', text: { mode: 'fixed', value: 'x', note: 'n' }, to: [1, 2], gone: 1, secret: 's' };
  assert.deepEqual(rebased(base, mine, theirs), { label: 'B', text: { mode: 'fixed', value: 'y', note: 'n' }, to: [1, 2], more: 2, secret: 's' });
  assert.deepEqual(rebased(base, { ...base, label: 'B' }, { ...base, label: 'C' }), { ...base, label: 'B' }, 'what both changed is as the draft has it');
  assert.equal(rebased({ header: 'a' }, { header: '' }, { header: 'a' }).header, '', 'an emptied text stays empty');
});

test('a part whose variant either side changed is as the draft has it', () => {
  const text = (value) => ({ mode: 'fixed', value });
  const byModel = { mode: 'ai', prompt: 'p' };
  const list = (...fixedValues) => ({ mode: 'array_extendable', fixedValues });
  const both = { ...list('a', 'b'), aiExtension: { enabled: true } };
  const cases = [
    [text('a'), byModel, text('b'), byModel],
    [text('a'), text('b'), byModel, text('b')],
    ['https://a.example', byModel, text('https://b.example'), byModel],
    [text('https://a.example'), text('https://b.example'), { ...text('https://a.example'), secret: true }, { ...text('https://b.example'), secret: true }],
    [text(['a']), list('a'), text(['b']), list('a')],
    [list('a'), { ...list('a'), aiExtension: { enabled: true } }, list('a', 'b'), both],
    [{ type: 'number', number: '+1' }, { type: 'number', number: '+2' }, { type: 'sip', uri: 'sip:a' }, { type: 'number', number: '+2' }],
    [{ do: 'hang_up' }, { do: 'leave_message', message: 'm' }, { do: 'hang_up', later: 1 }, { do: 'leave_message', message: 'm' }],
    [{ type: ['string', 'null'] }, { type: ['string', 'null'], title: 't' }, { type: ['string', 'null'], format: 'f' }, { type: ['string', 'null'], title: 't', format: 'f' }],
  ];
  for (const [base, mine, theirs, expected] of cases) assert.deepEqual(rebased({ to: base }, { to: mine }, { to: theirs }).to, expected);
});

test('another way to sign in at a model can be chosen, and keeps the members that both have alike', () => {
  const ways = { oneOf: [{ title: 'API key', $ref: '#/LlmKey' }, { title: 'OAuth client', $ref: '#/LlmClient' }] };
  const nameOf = (value) => variantsOf(ways, known, value).chosen?.name;
  assert.deepEqual([{ verify_claims: true }, { api_key: 'k', model: 'm' }, { client_id: 'c', model: 'm' }, { other: 1 }].map(nameOf), ['API key', 'API key', 'OAuth client', undefined]);
  const { variants: [key, client], by } = variantsOf(ways, known, undefined);
  const before = { verify_claims: true, model: 'm', api_key: 'k', base_url: 'https://a.example' };
  const after = turned(before, key, client, by, known);
  assert.deepEqual([cleaned(after), nameOf(after)], [{ verify_claims: true, model: 'm' }, 'OAuth client']);
  const back = turned({ ...after, client_secret: 's' }, client, key, by, known);
  assert.deepEqual([cleaned(back), nameOf(back)], [{ verify_claims: true, model: 'm' }, 'API key']);
  assert.equal(nameOf(turned(undefined, null, client, by, known)), 'OAuth client');
  const text = variantsOf(member('SmsConfig', 'text'), known, 'Hello');
  const [short, fixed, ai] = text.variants;
  assert.deepEqual([turned('Hello', short, fixed, text.by, known), turned({ mode: 'fixed', value: 'x' }, fixed, ai, text.by, known), turned({ mode: 'fixed' }, fixed, short, text.by, known)], [{ mode: 'fixed' }, { mode: 'ai' }, undefined]);
});

test('a problem stands at its field, or at the nearest that is shown', () => {
  assert.deepEqual([partsOf('recipients.fixedValues[0]'), partsOf('/a/0/b')], [['recipients', 'fixedValues', '0'], ['a', '0', 'b']]);
  const problems = [{ field: 'recipients.fixedValues[0]', problem: 'is no number' }, { field: 'label', problem: 'is missing' }, { field: 'odd', problem: 'is unknown' }];
  assert.deepEqual(problemsAt(problems, ['recipients', 'fixedValues', 0]), ['is no number']);
  assert.deepEqual(problemsAt(problems, ['recipients'], ['fixedValues']), []);
  assert.deepEqual(problemsAt(problems, ['recipients'], ['mode']), ['fixedValues.0 is no number']);
  assert.deepEqual(problemsAt(problems, [], ['recipients', 'label']), ['odd is unknown']);
});

test('a refusal keeps the problems of fields', async () => {
  const errors = [{ field: 'label', problem: 'is missing' }];
  const refused = await refusal(new Response(JSON.stringify({ code: 'invalid', errors }), { status: 422 }));
  assert.deepEqual([refused.fields, refused.message], [errors, 'Label is missing.']);
});

test('names become words, secrets are known by name, help begins with a sentence', () => {
  assert.deepEqual(['attach_to_agent', 'messageStrategy', 'base_url', 'knowledge_base_id'].map(wordsOf), ['Attach to agent', 'Message strategy', 'Base URL', 'Knowledge base ID']);
  const names = ['auth_token', 'api_key', 'api_key_secret', 'webhook_bearer', 'token_url', 'secret', 'label', 'client_id'];
  assert.deepEqual(names.filter((name) => SECRET.test(name)), ['auth_token', 'api_key', 'api_key_secret', 'webhook_bearer', 'secret']);
  assert.deepEqual(halves('Who  calls.\nOr so.'), ['Who calls. Or so.', '']);
  const rest = 'It is long. '.repeat(12).trim();
  assert.deepEqual(halves(`Who calls, in E.164 form. ${rest}`), ['Who calls, in E.164 form.', rest]);
});

test('a saved tool becomes its configuration, and its arguments a form', () => {
  const tool = { type: 'sms', label: 'Text', description: null, async: false, attach_to_agent: true, execute_on_call_start: false, config_metadata: { type: 'sms', text: { mode: 'ai', prompt: 'What' } } };
  assert.deepEqual(configOf(tool), { type: 'sms', label: 'Text', async: false, attach_to_agent: true, execute_on_call_start: false, text: { mode: 'ai', prompt: 'What' } });
  assert.deepEqual(argumentsOf(configOf(tool)), { type: 'object', properties: { text: { type: 'string', description: 'What' } }, required: ['text'] });
  const api = { type: 'api_request', headers: { 'X-Day': { mode: 'ai', prompt: 'Day', required: false } }, body: { guests: { mode: 'ai', prompt: 'How many', schema: { type: 'integer' } }, tags: { mode: 'array_extendable', aiExtension: { enabled: true, prompt: 'More' } } } };
  const { properties, required } = argumentsOf(api);
  assert.deepEqual([Object.keys(properties), required, properties.body_guests.type], [['header_X_Day', 'body_guests', 'body_tags'], ['body_guests'], 'integer']);
});

test('a table goes in parts with its header, and quoted line breaks stay within a row', () => {
  const table = '\uFEFFid,text\r\n1,"a\r\nb"\r\n\r\n2,c\r\n3,d\r\n';
  assert.deepEqual(inParts(table, { rows: 2 }), [{ text: 'id,text\n1,"a\nb"\n2,c', before: 0 }, { text: 'id,text\n3,d', before: 2 }]);
  assert.deepEqual(inParts('id'), [{ text: 'id', before: 0 }]);
});

test('a thing that is made stands above the others, and one that is gone does not stand', () => {
  const rows = { items: [{ id: 'a' }], fresh: [], next: null };
  assert.deepEqual(withNew(rows, { id: 'b' }).items.map(({ id }) => id), ['b', 'a']);
  assert.deepEqual(without(rows, 'a').items, []);
});
