import assert from 'node:assert/strict';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';
import { Sure } from '../assets/shell/acting.js';

/** A page with the question about deleting the only thing in it, which is asked. */
async function asked(context, does) {
  aPage();
  context.after(() => render(null, document.body));
  const draw = (there) => render(html`<main id="main">${there && html`<div><${Sure} id="delete" word="Delete…" title="Delete this hook?" yes="Delete" does=${() => does(draw)} /></div>`}</main><p id="done"></p>`, document.body);
  draw(true);
  const press = async (id) => {
    document.body.at(id).focus();
    document.body.at(id).fire('click');
    await settled();
  };
  await settled();
  await press('delete');
  const dialog = () => document.body.all(({ localName }) => localName === 'dialog')[0] ?? null;
  return { press, draw, dialog, said: () => document.body.at('done').textContent };
}

test('a confirmed deletion closes its question and is told, and the focus goes to the page once the button is gone', async (context) => {
  const { press, draw, dialog, said } = await asked(context, async () => {});
  await press('delete-yes');
  assert.deepEqual([dialog(), said(), document.activeElement], [null, 'Done: Delete this hook.', document.body.at('delete')]);
  draw(false);
  await settled();
  assert.equal(document.activeElement, document.body.at('main'));
});

test('a deletion that takes the question with it leaves the focus in the page, and tells it', async (context) => {
  const { press, said } = await asked(context, async (draw) => draw(false));
  await press('delete-yes');
  assert.deepEqual([said(), document.activeElement], ['Done: Delete this hook.', document.body.at('main')]);
});

test('a refused deletion tells nothing, and a button that goes by itself moves no focus', async (context) => {
  const { press, draw, dialog, said } = await asked(context, async () => Promise.reject(new Error('Not now.')));
  await press('delete-yes');
  assert.deepEqual([dialog()?.textContent.includes('Not now.'), said()], [true, '']);
  dialog().close();
  await settled();
  document.body.focus();
  draw(false);
  await settled();
  assert.equal(document.activeElement, document.body);
});
