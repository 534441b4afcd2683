import assert from 'node:assert/strict';
import test from 'node:test';

import { blocks, spans } from '../assets/text.js';

test('a text is blocks, however far it has been written', () => {
  const text = '# Head\nOne\ntwo\n\n- a\n- b\n  more\n\n3. c\n4) d\n```js\nlet x;\n\n# no head\n```\nend';
  assert.deepEqual(blocks(text), [
    { kind: 'heading', text: 'Head' },
    { kind: 'paragraph', text: 'One\ntwo' },
    { kind: 'list', ordered: false, start: 1, items: ['a', 'b\nmore'] },
    { kind: 'list', ordered: true, start: 3, items: ['c', 'd'] },
    { kind: 'code', text: 'let x;\n\n# no head' },
    { kind: 'paragraph', text: 'end' },
  ]);
  for (let until = 0; until <= text.length; until += 1) blocks(text.slice(0, until)).forEach((block) => spans(block.text ?? ''));
  assert.deepEqual(blocks('```\nopen'), [{ kind: 'code', text: 'open' }]);
});

test('a line has code, bold and https links, and everything else is text', () => {
  assert.deepEqual(spans('See `a*b` and **this**, [there](https://x.example/a) or https://y.example/b.'), [
    { kind: 'text', text: 'See ' },
    { kind: 'code', text: 'a*b' },
    { kind: 'text', text: ' and ' },
    { kind: 'bold', text: 'this' },
    { kind: 'text', text: ', ' },
    { kind: 'link', text: 'there', address: 'https://x.example/a' },
    { kind: 'text', text: ' or ' },
    { kind: 'link', text: 'https://y.example/b', address: 'https://y.example/b' },
    { kind: 'text', text: '.' },
  ]);
  for (const plain of ['[x](javascript:alert(1))', '[x](http://x.example)', '<b>x</b>', '<img src=x onerror=alert(1)>', '2 * 3 ** 4', '']) {
    assert.ok(spans(plain).every((span) => span.kind === 'text'), plain);
  }
});
