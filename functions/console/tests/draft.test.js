import assert from 'node:assert/strict';
import test from 'node:test';

import { restored, written } from '../assets/shell/draft.js';
import { changes, cleaned } from '../assets/shell/schema.js';

const draft = (value, { base = '', since = '' } = {}) => written({ since, value, base: since && base });

test('a draft keeps no value of a secret, and all else of it', () => {
  const value = {
    auth_token: 'one', secret: 'two', pins: ['three'], pin: 4, tokens: 5,
    signing_secret: { mode: 'fixed', value: 'whsec_six' },
    body: { api_key: { mode: 'ai', prompt: 'The key' }, line: { mode: 'fixed', value: 'seven', secret: true }, day: { mode: 'fixed', value: 'Tuesday', secret: false } },
  };
  const { first, moved } = restored(draft(value), '', {});
  assert.deepEqual({ moved, first: cleaned(first) }, {
    moved: false,
    first: {
      pins: ['three'], tokens: 5, signing_secret: { mode: 'fixed' },
      body: { api_key: { mode: 'ai', prompt: 'The key' }, line: { mode: 'fixed', secret: true }, day: { mode: 'fixed', value: 'Tuesday', secret: false } },
    },
  });
});

test('a draft of the same version takes its secrets from that version', () => {
  const masked = { mode: 'fixed', value: '[secret]', secret: true };
  const base = { description: 'Books.', signing_secret: masked, body: { api_key: masked, line: masked } };
  const text = draft({ ...base, description: 'Books a day.' }, { base, since: '3' });
  const { first, moved } = restored(text, '3', base);
  assert.deepEqual([changes(base, first), moved], [{ description: 'Books a day.' }, false]);
  const without = { description: 'Books.', body: { line: masked } };
  assert.deepEqual(changes(base, restored(draft(without, { base, since: '3' }), '3', base).first), { signing_secret: null, body: { line: masked } }, 'the person removed them');
});

test('a list of secrets is not kept, whatever gives its values', () => {
  const list = { mode: 'array_extendable', fixedValues: ['TOPSECRET'], aiExtension: { enabled: true, prompt: 'More' } };
  const value = { body: { token: list, marked: { ...list, secret: true }, pin: { digits: 'TOPSECRET', more: { value: 'TOPSECRET' } }, tags: { ...list, fixedValues: ['one'] } } };
  const { fixedValues: _, ...rest } = list;
  const text = draft(value);
  assert.ok(!text.includes('TOPSECRET'), text);
  assert.deepEqual(cleaned(restored(text, '', {}).first), { body: { token: rest, marked: { ...rest, secret: true }, pin: {}, tags: { ...list, fixedValues: ['one'] } } });
});

test('a secret that another variant replaced leaves nothing of its own', () => {
  const base = { label: 'A', body: { api_key: { mode: 'fixed', value: '[secret]' } } };
  const byModel = { mode: 'ai', prompt: 'The key' };
  const after = (mine) => restored(draft(mine, { base, since: '1' }), '1', base).first;
  assert.deepEqual(after({ ...base, body: { api_key: byModel } }).body.api_key, byModel);
  const extended = { mode: 'array_extendable', aiExtension: { enabled: true, prompt: 'p' } };
  assert.deepEqual(after({ ...base, body: { api_key: extended } }).body.api_key, extended);
  assert.deepEqual(after({ ...base, signing_secret: 'typed' }), base);
});

test('a secret in short form stays removed, and a replaced one is that of the version', () => {
  const base = { label: 'A', api_key: '[secret]', signing_secret: { mode: 'fixed', value: '[secret]' } };
  const after = (mine) => restored(draft(mine, { base, since: '1' }), '1', base).first;
  assert.deepEqual(changes(base, after({ label: 'B', signing_secret: base.signing_secret })), { label: 'B', api_key: null });
  assert.deepEqual(changes(base, after({ label: 'B', api_key: 'typed', signing_secret: 'typed' })), { label: 'B' });
  assert.deepEqual(changes(base, cleaned(after({ ...base, body: { token: 'typed', day: 1 } }))), { body: { day: 1 } });
});

test('a draft of an earlier version is made to this one, or is none without its base', () => {
  const base = { label: 'One', text: 'Two' };
  const text = draft({ label: 'One', text: 'Three' }, { base, since: '1' });
  assert.deepEqual(restored(text, '2', { label: 'Other', text: 'Two' }), { first: { label: 'Other', text: 'Three' }, moved: true });
  assert.deepEqual(restored(draft({ label: 'x' }, { since: '1' }), '2', base), { first: null, moved: true });
  assert.deepEqual(restored(null, '2', base), { first: null, moved: false });
});

test('a draft that was kept without a version is there again', () => {
  assert.deepEqual(restored(draft({ label: 'x' }), '2', { label: 'One' }), { first: { label: 'x' }, moved: false });
});

test('a draft that was begun on a version saved here is moved only by somebody else’s', () => {
  const stored = { since: '1', value: { label: 'Three', text: 'Two', pin: '' }, base: { label: 'One', text: 'Two', pin: '' }, saved: '2' };
  const on = (base, of = stored) => restored(JSON.stringify(of), '2', base);
  const base = { label: 'One', text: 'Two', pin: '[secret]', wait_ms: 0 };
  assert.deepEqual(on(base), { first: { ...base, label: 'Three' }, moved: false });
  const theirs = on({ ...base, text: 'Other' }, { ...stored, saved: '1.5' });
  assert.deepEqual(theirs, { first: { ...base, label: 'Three', text: 'Other' }, moved: true });
  assert.equal(on(base, { ...stored, saved: true }).moved, false, 'an answer that names no version');
  assert.equal(on(base, { ...stored, saved: undefined }).moved, true);
});
