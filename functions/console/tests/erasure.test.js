import assert from 'node:assert/strict';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';
import { View } from '../assets/erasure/page.js';

const more = (cursor) => ({ deleted: { calls: 100 }, runs_under_way: [], complete: false, next_cursor: cursor, phone_number: '+14155550101' });

test('an erasure ends when its page is left', async () => {
  aPage();
  const asked = [];
  const answers = [];
  const api = { act: (method, path, body) => (asked.push([method, path, body]), new Promise((come) => answers.push(come))) };
  render(html`<${View} api=${api} slug="acme" role="owner" />`, document.body);
  await settled();
  for (const id of ['erase-number', 'erase-again']) {
    document.body.at(id).fire('input', { value: '+14155550101' });
    await settled();
  }
  document.body.all(({ localName }) => localName === 'form')[0].fire('submit');
  await settled();
  answers[0](more('1'));
  await settled();
  assert.equal(asked.length, 2, 'it goes on while the page is open');
  render(null, document.body);
  await settled();
  answers[1](more('2'));
  await settled();
  assert.deepEqual(asked.map(([, , { cursor }]) => cursor), [undefined, '1']);
});

test('a call that is not over is named with the next step', async () => {
  aPage();
  const answer = { ...more(null), calls_under_way: ['call-1'] };
  render(html`<${View} api=${{ act: async () => answer }} slug="acme" role="owner" />`, document.body);
  await settled();
  for (const id of ['erase-number', 'erase-again']) {
    document.body.at(id).fire('input', { value: '+14155550101' });
    await settled();
  }
  document.body.all(({ localName }) => localName === 'form')[0].fire('submit');
  await settled();
  assert.match(document.body.textContent, /A call with this number is not over\. Wait for the end, then delete once more: call 1/);
  assert.doesNotMatch(document.body.textContent, /It is not complete/);
});
