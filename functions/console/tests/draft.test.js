import assert from 'node:assert/strict';
import test from 'node:test';

import { restored, written } from '../assets/shell/draft.js';
import { changes } from '../assets/shell/schema.js';

const draft = (value, { base = '', since = '' } = {}) => written({ since, value, base: since && base });

test('a draft keeps no value of a secret, and all else of it', () => {
  const value = {
    auth_token: 'one', secret: 'two', pins: ['three'], pin: 4, tokens: 5,
    signing_secret: { mode: 'fixed', value: 'whsec_six' },
    body: { api_key: { mode: 'ai', prompt: 'The key' }, line: { mode: 'fixed', value: 'seven', secret: true }, day: { mode: 'fixed', value: 'Tuesday', secret: false } },
  };
  assert.deepEqual(restored(draft(value), '', {}), {
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

test('a draft of an earlier version is made to this one, or is none without its base', () => {
  const base = { label: 'One', text: 'Two' };
  const text = draft({ label: 'One', text: 'Three' }, { base, since: '1' });
  assert.deepEqual(restored(text, '2', { label: 'Other', text: 'Two' }), { first: { label: 'Other', text: 'Three' }, moved: true });
  assert.deepEqual(restored(draft({ label: 'x' }), '2', base), { first: null, moved: true });
  assert.deepEqual(restored(null, '2', base), { first: null, moved: false });
});
