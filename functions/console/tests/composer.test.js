import assert from 'node:assert/strict';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';

test('a draft of a message is shown in its own organization only', async () => {
  aPage();
  globalThis.ResizeObserver = class {
    observe() {}
    disconnect() {}
  };
  const { View } = await import('../assets/chat/page.js');
  const field = async (organization) => {
    const api = { organization, threads: async () => ({ items: [], next_cursor: null }), whyReadOnly: async () => null };
    render(html`<${View} key=${organization} api=${api} signIn=${() => {}} />`, document.body);
    await settled();
    return document.body.at('message');
  };
  (await field('acme')).fire('input', { value: 'Call Ana about the invoice' });
  await settled();
  assert.equal((await field('b')).attributes.value, '');
  assert.equal((await field('acme')).attributes.value, 'Call Ana about the invoice');
  render(null, document.body);
});
