import assert from 'node:assert/strict';
import test from 'node:test';

import { bounds, scale, slices, ticks } from '../assets/shell/chart_shapes.js';

test('ticks are round, span the values and hold zero', () => {
  assert.deepEqual(ticks([0.1, 0.3]), [0, 0.1, 0.2, 0.3]);
  assert.deepEqual(ticks([-800, 18_250]), [-5_000, 0, 5_000, 10_000, 15_000, 20_000]);
  for (const values of [[], [0], [0, 0], [Number.NaN]]) assert.deepEqual(ticks(values), [0, 1]);
  for (const values of [[7], [-7], [1e-9, 2e-9], [1e15, -3], [12, 13, 14]]) {
    const marks = ticks(values);
    assert.ok(marks.includes(0) && marks.length <= 8, `${marks}`);
    assert.ok(marks[0] <= Math.min(...values) && marks.at(-1) >= Math.max(...values), `${marks}`);
  }
});

test('a scale is a line, also upside down and without length', () => {
  assert.equal(scale([0, 10], [100, 0])(2.5), 75);
  assert.equal(scale([3, 3], [0, 100])(3), 0);
});

test('slices are shares, and what is not above zero has none', () => {
  const [half, quarter, nothing, rest] = slices([2, 1, -5, 1]);
  assert.deepEqual([half.share, quarter.share, nothing.share, rest.share], [0.5, 0.25, 0, 0.25]);
  assert.equal(nothing.path, '');
  assert.match(slices([7])[0].path, /Z$/);
  assert.doesNotMatch(slices([7])[0].path, /NaN/);
  assert.deepEqual(slices([0, 0]).map((slice) => slice.path), ['', '']);
});

test('bounds hold all markers with some room, and stay on the earth', () => {
  const one = bounds([{ latitude: 41, longitude: -8 }]);
  assert.ok(one.west < -8 && one.east > -8 && one.south < 41 && one.north > 41);
  const poles = bounds([{ latitude: -90, longitude: -180 }, { latitude: 90, longitude: 180 }]);
  assert.deepEqual(poles, { west: -180, east: 180, south: -90, north: 90 });
});
