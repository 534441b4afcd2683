import assert from 'node:assert/strict';
import test from 'node:test';

import { inParts, load, textOf } from '../assets/knowledge/tables.js';
import { isReadInTime } from './long_texts.js';

/** The API as far as a load needs it: the first row with an id is taken; `bad` rows are not. Gives the sent tables and the last sums. */
async function loaded(table) {
  const sent = [];
  let sums;
  const send = async (text) => {
    sent.push(text);
    const first = new Map();
    const refused = [];
    text.split('\n').slice(1).forEach((line, place) => {
      const [id, words] = line.split(',');
      const row = place + 2;
      if (words === 'bad') refused.push({ row, field: 'text', problem: 'is bad' });
      else if (id && first.has(id)) refused.push({ row, field: 'id', problem: `is that of row ${first.get(id)} too, or the rows are the same; give each its own id` });
      else first.set(id, row);
    });
    return { loaded: text.split('\n').length - 1 - refused.length, refused_rows: refused.length, refused };
  };
  await load(table, send, (told) => { sums = told; });
  return { sent, ...sums };
}
const rows = (from, until, words = 'x') => Array.from({ length: until - from }, (_, place) => `n${from + place},${words}`);

test('a table in another encoding is refused in the words of the API', () => {
  assert.equal(textOf(new TextEncoder().encode('id,text\na,café')), 'id,text\na,café');
  assert.throws(() => textOf(Uint8Array.from([0x69, 0x64, 0x0a, 0x63, 0x61, 0x66, 0xe9])), { message: 'The table is not UTF-8 text; save it as "CSV UTF-8".' });
});

test('a quote opens where a cell begins and nowhere else', () => {
  const lines = (table) => inParts(table, { rows: 1 }).map(({ text }) => text.slice(text.indexOf('\n') + 1));
  assert.deepEqual(lines('id,text\n1,a 5" nail\n2,b\n3,6"\n'), ['1,a 5" nail', '2,b', '3,6"']);
  assert.deepEqual(lines('id;text\n1;"a;""b""\nc"\n2;d,"e\n3;"f"g"\n'), ['1;"a;""b""\nc"', '2;d,"e', '3;"f"g"']);
  assert.deepEqual(lines('\n \nid\ttext\n1\t"a\tb"\n\n2\tc;"\n'), ['1\t"a\tb"', '2\tc;"']);
  assert.deepEqual(lines('id,text\n1,"open\n2,b\n'), ['1,"open\n2,b\n'], 'as the API reads it');
});

test('a table is split in a time that grows with its length', () => {
  for (const cell of ['a 5" nail', '"open', 'x']) {
    isReadInTime(cell, (size) => `id,text\n1,${cell}\n${'2,word after word\n'.repeat(size / 18)}`, inParts);
  }
});

test('an id that an earlier part has is refused with its rows in the whole table', async () => {
  const table = ['id,text', ...rows(0, 600), 'n3,later', ...rows(600, 700), 'n650,again', ',same', ...rows(700, 1_000), '"n3",once more'];
  const { sent, wrong, loaded: sum, rows: refused, done, all } = await loaded(table.join('\r\n'));
  assert.ok(sent.every((text) => text.startsWith('id,text\n')) && !sent.join().includes('later') && !sent.join().includes('once more'));
  const twin = (row, of) => ({ row, field: 'id', problem: `is that of row ${of} too, or the rows are the same; give each its own id` });
  assert.deepEqual(wrong.sort((one, other) => one.row - other.row), [twin(602, 5), twin(703, 653), twin(1_005, 5)]);
  assert.deepEqual([sum, refused, done, all], [1_001, 3, 3, 3]);
});

test('a row that was not taken leaves its id to a later one', async () => {
  const { wrong, loaded: sum, rows: refused } = await loaded(['id,text', 'n1,bad', ...rows(2, 600), 'n1,good', 'n7,bad'].join('\n'));
  assert.deepEqual(wrong.map(({ row, field }) => [row, field]), [[2, 'text'], [602, 'id']]);
  assert.deepEqual([sum, refused], [599, 2]);
  assert.deepEqual((await loaded('id,text')).sent, ['id,text']);
  assert.deepEqual((await loaded('')).sent, ['']);
});

test('rows behind a cut list of problems leave their ids to later rows', async () => {
  const bad = (_, place) => ({ row: place + 2, field: 'text', problem: 'is bad' });
  const parts = [
    // 400 rows with three problems each: the list ends within row 335, and the rows from there on may be good or bad.
    { loaded: 100, refused_rows: 400, refused: Array.from({ length: 400 }, bad).flatMap((problem) => [problem, problem, problem]).slice(0, 1_000) },
    { loaded: 3, refused_rows: 0, refused: [] },
  ];
  const sent = [];
  let sums;
  const send = async (text) => (sent.push(text), parts.shift());
  await load(['id,text', ...rows(0, 500), 'n399,twin of a bad one', 'n499,twin', 'n0,twin of a bad one'].join('\n'), send, (told) => { sums = told; });
  assert.equal(sent[1].split('\n').length, 4, 'all three are sent');
  assert.deepEqual([sums.loaded, sums.rows, sums.wrong.length], [103, 400, 1_000]);
});

test('rows before the end of a cut list of problems keep their ids', async () => {
  const refused = Array.from({ length: 334 }, (_, place) => [3, 3, 3].map(() => ({ row: place + 3, field: 'text', problem: 'is bad' }))).flat().slice(0, 1_000);
  const parts = [{ loaded: 1, refused_rows: 400, refused }];
  let sums;
  await load(['id,text', ...rows(0, 500), 'n0,twin'].join('\n'), async () => parts.shift(), (told) => { sums = told; });
  assert.deepEqual(sums.wrong.at(-1), { row: 502, field: 'id', problem: 'is that of row 2 too, or the rows are the same; give each its own id' });
});
