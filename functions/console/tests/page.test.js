import assert from 'node:assert/strict';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';
import { View as Home } from '../assets/home/page.js';
import { Api } from '../assets/shell/api.js';
import { Page } from '../assets/shell/page.js';
import { store } from '../assets/shell/store.js';

test('the requests of a page are of the organization that it shows', async (context) => {
  aPage();
  const asked = [];
  context.mock.method(globalThis, 'fetch', async (address, { headers }) => {
    asked.push([new URL(address).pathname, headers['x-organization']]);
    return new Response(JSON.stringify({ items: [], next_cursor: null }));
  });
  const api = new Api({ token: async () => 'x' }, 'http://stream');
  const state = store({ phase: 'inside', organization: 'acme', role: 'owner', organizations: ['acme', 'b'], person: 'Ana', notice: null, hash: '#/acme/home' });
  api.organization = 'b';
  render(html`<${Page} state=${state} entrance=${{}} api=${api} />`, document.body);
  for (let turn = 0; turn < 20 && asked.length < 8; turn += 1) await settled();
  render(null, document.body);
  assert.ok(asked.some(([path]) => path === '/api/acme/usage'), JSON.stringify(asked));
  assert.deepEqual(asked.filter(([path, slug]) => !path.startsWith('/api/acme/') || slug !== 'acme'), []);
});

test('Home looks for failures of runs that act, not of dry runs', async (context) => {
  aPage();
  context.after(() => render(null, document.body));
  const asked = {};
  const api = { read: async (path, query) => ((asked[path] = query), { items: [], next_cursor: null }) };
  render(html`<${Home} api=${api} slug="acme" />`, document.body);
  await settled();
  assert.deepEqual([asked.runs.failed, asked.runs.dry_run], [true, false]);
});

test('Esc closes the innermost part first', async (context) => {
  aPage();
  context.after(() => render(null, document.body));
  let press = null;
  document.addEventListener = (type, listener) => { if (type === 'keydown') press = listener; };
  const closed = [];
  const links = ['list', 'form'].map((name) => ({ click: () => closed.push(name) }));
  document.querySelectorAll = (asked) => (asked === '[data-close]' ? links : []);
  document.querySelector = (asked) => (asked === '[data-close]' ? links[0] : null);
  const api = { read: async () => ({ items: [], next_cursor: null }), within: () => api };
  const state = store({ phase: 'inside', organization: 'acme', role: 'owner', organizations: ['acme'], person: 'Ana', notice: null, hash: '#/acme/none' });
  render(html`<${Page} state=${state} entrance=${{}} api=${api} />`, document.body);
  await settled();
  press({ key: 'Escape', target: document.body, preventDefault() {} });
  assert.deepEqual(closed, ['form']);
});
