import assert from 'node:assert/strict';
import test from 'node:test';

import { axisOf, barOf, clock, placeOf, segmentsOf } from '../assets/shell/axis.js';

test('long silence takes little room, and times keep their order', () => {
  const parts = segmentsOf(100_000, [[0, 10_000], [90_000, 100_000]]);
  assert.deepEqual(parts.map(({ torn }) => torn), [false, true, false]);
  const places = [0, 5_000, 10_000, 50_000, 90_000, 100_000].map((time) => placeOf(time, parts));
  assert.deepEqual(places, places.toSorted((one, other) => one - other));
  assert.deepEqual([places[0], places.at(-1)], [0, 1]);
  assert.ok(placeOf(90_000, parts) - placeOf(10_000, parts) < 0.2, 'eighty seconds of silence take less than a fifth');
  assert.ok(axisOf(100_000, parts).every((time) => time < 11_000 || time > 89_000), 'no tick stands in silence');
});

test('silence is shown on request, and short silence always', () => {
  assert.equal(segmentsOf(100_000, [[0, 10_000], [90_000, 100_000]], { open: true }).length, 1);
  assert.equal(segmentsOf(6_000, [[0, 100], [4_000, 6_000]]).length, 1);
  assert.equal(placeOf(50, segmentsOf(100, [])), 0.5);
});

test('a short run has ticks, and a bar without a length stands within the picture', () => {
  assert.deepEqual(axisOf(40, segmentsOf(40, []), 4).map(clock), ['0 s', '0.01 s', '0.02 s', '0.03 s', '0.04 s']);
  assert.deepEqual(barOf(1, 1), { x: '99.40%', width: '0.60%' });
  assert.deepEqual(barOf(0.25, 0.5), { x: '25.00%', width: '25.00%' });
});

test('a time since the beginning is short in words', () => {
  assert.deepEqual([0, 452, 9_960, 24_904, 114_200].map(clock), ['0 s', '0.5 s', '10 s', '0:25', '1:54']);
});
