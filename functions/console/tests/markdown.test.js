import assert from 'node:assert/strict';
import test from 'node:test';

import { addressOf, blocks, directionOf, spans } from '../assets/chat/markdown.js';
import { isReadInTime } from './long_texts.js';

const paragraph = (text) => ({ kind: 'paragraph', text });
const list = (items, { ordered = false, start = 1 } = {}) => ({ kind: 'list', ordered, start, items });
const text = (words) => ({ kind: 'text', text: words });
const link = (words, address, host = null) => ({ kind: 'link', spans: [text(words)], address, host });

test('a text is blocks, however far it has been written', () => {
  const whole =
    '# Head\nOne\ntwo\n\n- a\n- b\n  more\n\n3. c\n4) d\n```js\nlet x;\n\n# no head\n```\n> said\n> - x\n---\n| a | b |\n|--|:-:|\n| 1 | 2 |\nend';
  assert.deepEqual(blocks(whole), [
    { kind: 'heading', text: 'Head' },
    paragraph('One\ntwo'),
    list([[paragraph('a')], [paragraph('b\nmore')]]),
    list([[paragraph('c')], [paragraph('d')]], { ordered: true, start: 3 }),
    { kind: 'code', text: 'let x;\n\n# no head' },
    { kind: 'quote', blocks: [paragraph('said'), list([[paragraph('x')]])] },
    { kind: 'rule' },
    { kind: 'table', head: ['a', 'b'], rows: [['1', '2']], aligned: ['start', 'center'] },
    paragraph('end'),
  ]);
  for (let until = 0; until <= whole.length; until += 1) blocks(whole.slice(0, until)).forEach((block) => spans(block.text ?? ''));
  assert.deepEqual(blocks('```\nopen'), [{ kind: 'code', text: 'open' }]);
  assert.deepEqual(blocks('The year was\n1984. It rained.'), [paragraph('The year was\n1984. It rained.')]);
});

test('lists stand in lists, with paragraphs and code of their items', () => {
  const nested = '1. one\n   - a\n     - deep\n   - b\n2. two\n\n   its paragraph\n\n   ```\n   code\n   ```\n3. three\n\nafter';
  assert.deepEqual(blocks(nested), [
    list(
      [
        [paragraph('one'), list([[paragraph('a'), list([[paragraph('deep')]])], [paragraph('b')]])],
        [paragraph('two'), paragraph('its paragraph'), { kind: 'code', text: 'code' }],
        [paragraph('three')],
      ],
      { ordered: true },
    ),
    paragraph('after'),
  ]);
});

test('a table has as many cells in a row as it has columns', () => {
  const [table] = blocks('| Name | Note |\n|:--|--:|\n| `a|b` | x \\| y | too much |\n| lone |');
  assert.deepEqual(table, {
    kind: 'table',
    head: ['Name', 'Note'],
    rows: [['`a|b`', 'x | y'], ['lone', '']],
    aligned: ['start', 'end'],
  });
  for (const none of ['a | b', 'a | b\nc | d', '| a |\n| - | - |', 'text\n---']) {
    assert.ok(blocks(none).every(({ kind }) => kind !== 'table'), none);
  }
});

test('a line has code, bold, italics and links', () => {
  assert.deepEqual(spans('See `a*b`, **this**, *that* or _that_ and ~~not~~ ***both*** 2 * 3 ** 4 5*6*7 snake_case_name \\*x\\*<br>y'), [
    text('See '),
    { kind: 'code', text: 'a*b' },
    text(', '),
    { kind: 'bold', spans: [text('this')] },
    text(', '),
    { kind: 'italic', spans: [text('that')] },
    text(' or '),
    { kind: 'italic', spans: [text('that')] },
    text(' and '),
    { kind: 'struck', spans: [text('not')] },
    text(' '),
    { kind: 'bold', spans: [{ kind: 'italic', spans: [text('both')] }] },
    text(' 2 * 3 ** 4 5*6*7 snake_case_name *x*\ny'),
  ]);
  assert.deepEqual(spans('**a [b](https://x.example/) *c* d**'), [
    { kind: 'bold', spans: [text('a '), link('b', 'https://x.example/', 'x.example'), text(' '), { kind: 'italic', spans: [text('c')] }, text(' d')] },
  ]);
});

test('a link says where it leads, and leads to the web, to an e-mail address or to a telephone', () => {
  for (const [written, expected] of [
    ['[there](https://x.example/a)', link('there', 'https://x.example/a', 'x.example')],
    ['[x.example](https://x.example/a)', link('x.example', 'https://x.example/a')],
    ['https://y.example/b', link('https://y.example/b', 'https://y.example/b')],
    ['<https://y.example/b.>', link('https://y.example/b.', 'https://y.example/b.')],
    ['[wiki](http://w.example/a_(b))', link('wiki', 'http://w.example/a_(b)', 'w.example')],
    ['[Ana](mailto:ana@x.example)', link('Ana', 'mailto:ana@x.example', 'ana@x.example')],
    ['[+14155550123](tel:+14155550123)', link('+14155550123', 'tel:+14155550123')],
    ['[https://bank.example](https://evil.example)', link('https://bank.example', 'https://evil.example/', 'evil.example')],
    ['[bank.example](https://bank.example.evil.example)', link('bank.example', 'https://bank.example.evil.example/', 'bank.example.evil.example')],
    ['[bаnk](https://bаnk.example)', link('bаnk', 'https://xn--bnk-6cd.example/', 'xn--bnk-6cd.example')],
  ]) {
    assert.deepEqual(spans(written), [expected], written);
  }
  for (const plain of [
    '[x](javascript:alert(1))', '[x](data:text/html,x)', '[x](//x.example)', '[x](/x)', '[x](https://bank.example@evil.example/)',
    '<b>x</b>', '<img src=x onerror=alert(1)>', '[x](java\tscript:alert(1))', '![x](javascript:x)', '', '[x](mailto:100%)', '<mailto:100%>',
  ]) {
    assert.ok(spans(plain).every((span) => span.kind === 'text'), plain);
  }
});

test('an address that cannot be read, or a missing one, is none', () => {
  for (const none of ['https://', 'mailto:100%', 'tel:%', undefined]) assert.equal(addressOf(none), null, none);
});

test('a block that is written from right to left is one', () => {
  for (const [written, direction] of [
    ['- الساعة', 'rtl'], ['| שם | x |\n|--|--|', 'rtl'], ['> 1. مرحبا', 'rtl'], ['- 12 Tuesday مرحبا', 'ltr'], ['- 12', 'ltr'],
  ]) {
    assert.equal(directionOf(blocks(written)[0]), direction, written);
  }
});

test('a heading, a table and code begin and end as before', () => {
  for (const [written, words] of [['# a #', 'a'], ['## a # ##  ', 'a # ##'], ['# a# ', 'a#'], ['#  a#', 'a'], ['# #', ''], ['### ', ''], ['# a \\#', 'a \\']]) {
    assert.deepEqual(blocks(written), [{ kind: 'heading', text: words }], written);
  }
  for (const none of ['#a', '#', '####### a']) assert.equal(blocks(none)[0].kind, 'paragraph', none);
  for (const line of ['|-|-|', ' - | :-: ', '|:-|-:|  ', '-|-', '   |  - |  -  |']) assert.equal(blocks(`a | b\n${line}`)[0].kind, 'table', line);
  for (const line of ['|-|-|x', '- - | -', '|-||', '    |-|-|']) assert.ok(blocks(`a | b\n${line}`).every(({ kind }) => kind !== 'table'), line);
  assert.deepEqual(blocks('~~~~js\nx\n~~~~'), [{ kind: 'code', text: 'x' }]);
  assert.deepEqual(blocks('- a\n\n\n\n  b\n\n\nc'), [list([[paragraph('a'), paragraph('b')]]), paragraph('c')]);
  assert.deepEqual(spans('` a ` ``b`c``'), [{ kind: 'code', text: 'a' }, text(' '), { kind: 'code', text: 'b`c' }]);
  assert.deepEqual(spans('[a](  https://x.example/  "b" )'), [link('a', 'https://x.example/', 'x.example')]);
});

test('a text is read in a time that grows with its length', () => {
  const read = (written) => blocks(written).forEach((block) => spans(block.text ?? ''));
  const texts = {
    'signs behind a heading': (size) => `# ${'#'.repeat(size)}x`,
    'spaces in a heading': (size) => `# a${' '.repeat(size)}x`,
    'spaces in a delimiter': (size) => `a | b\n--|--${' '.repeat(size)}x`,
    'a fence that is none': (size) => `${'~'.repeat(size)}\``,
    'spaces in an item': (size) => `- ${' '.repeat(size)}a\u2028b`,
    'empty lines in a list': (size) => `- a${'\n'.repeat(size)}  b`,
    'spaces in a link': (size) => `[a](${' '.repeat(size)}x`,
    'backticks': (size) => `${'`'.repeat(size)}a`,
  };
  for (const part of ['*a ', '**', '_x', '[a](', '`', '<https://', '~~ ', '> ', '| a ', '- ', '  - x\n', '\\', '[[']) {
    texts[part] = (size) => part.repeat(size / 4);
  }
  for (const [name, make] of Object.entries(texts)) isReadInTime(name, make, read);
});
