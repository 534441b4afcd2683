import assert from 'node:assert/strict';
import test from 'node:test';

import { aPage, settled } from './drawn.js';
import { html, render } from '../assets/htm-preact.js';
import { List } from '../assets/shell/list.js';

test('new rows are announced once, however many come', async () => {
  aPage();
  const draw = async (fresh) => {
    const rows = { items: [{ id: 'a' }], fresh, next: null };
    render(html`<${List} what="Calls" name="calls" rows=${rows} columns=${[{ head: 'Id', cell: ({ id }) => id }]} hrefOf=${() => ''} />`, document.body);
    await settled();
    return document.body.all(({ attributes }) => attributes.role === 'status');
  };
  const [region] = await draw([]);
  const said = [region.textContent];
  for (const count of [1, 2, 5, 0, 3]) {
    const regions = await draw(Array.from({ length: count }, (_, id) => ({ id })));
    assert.deepEqual(regions, [region], 'the region stays, or its change is not spoken');
    said.push(region.textContent);
  }
  assert.deepEqual(said, ['', 'There are new rows.', 'There are new rows.', 'There are new rows.', '', 'There are new rows.']);
  assert.match(document.body.textContent, /Show 3 new/);
});
