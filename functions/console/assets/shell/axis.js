// An axis of time with shortened silence.

/** Shortened silence is longer than this share of the whole, and than this many milliseconds. */
const LONG_SHARE = 0.1;
const LONG = 5_000;
/** Width of shortened silence, as a share of the picture. */
const TORN = 0.05;
/** Milliseconds kept at each side at most. */
const ROOM = 1_000;
/** Between a tick and shortened silence. */
const EDGE = 0.025;

/**
 * Parts of the axis: `{from, to, start, end, torn}`, times and shares of the width. `busy` are pairs of times with activity;
 * long silence between them is torn out, unless it is `open`.
 */
export function segmentsOf(span, busy, { open = false } = {}) {
  const silences = [];
  let until = 0;
  for (const [from, to] of busy.toSorted(([one], [other]) => one - other)) {
    const silence = from - until;
    // So that marks do not stand at its edge.
    const room = Math.min(silence * 0.08, ROOM);
    if (!open && silence > LONG && silence > span * LONG_SHARE) silences.push([until + room, from - room]);
    until = Math.max(until, to);
  }
  const shown = span - silences.reduce((sum, [from, to]) => sum + to - from, 0);
  const width = 1 - silences.length * TORN;
  const parts = [];
  let [time, x] = [0, 0];
  const add = (to, torn) => {
    const end = x + (torn ? TORN : ((to - time) / shown) * width);
    parts.push({ from: time, to, start: x, end, torn });
    [time, x] = [to, end];
  };
  for (const [from, to] of silences) {
    add(from, false);
    add(to, true);
  }
  add(span, false);
  return parts;
}

/** As a share of the width. */
export function placeOf(time, parts) {
  const part = parts.find(({ to }) => time <= to) ?? parts.at(-1);
  const share = (time - part.from) / (part.to - part.from || 1);
  return part.start + Math.min(Math.max(share, 0), 1) * (part.end - part.start);
}

export function percent(share) {
  return `${(share * 100).toFixed(2)}%`;
}

/** `{x, width}` of shares of the width; a bar without a length is seen, too. */
export function barOf(from, to) {
  const width = Math.max(to - from, 0.006);
  return { x: percent(Math.min(from, 1 - width)), width: percent(width) };
}

/** Round times outside shortened silence, about `wanted` at most. */
export function axisOf(span, parts, wanted = 8) {
  const shown = parts.filter(({ torn }) => !torn);
  const length = shown.reduce((sum, { from, to }) => sum + to - from, 0);
  const steps = [10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 12e5, 18e5, 36e5];
  const step = steps.find((candidate) => length / candidate <= wanted) ?? steps.at(-1);
  const ticks = [];
  for (let time = 0; time <= span; time += step) if (shown.some(({ from, to }) => time >= from && time <= to)) ticks.push(time);
  const torn = parts.filter((part) => part.torn);
  return ticks.filter((time) => torn.every(({ start, end }) => placeOf(time, parts) < start - EDGE || placeOf(time, parts) > end + EDGE));
}

/** Since the beginning: `1:54`, or `0.5 s` if short. */
export function clock(milliseconds) {
  if (milliseconds < 10_000) return `${Number((milliseconds / 1000).toFixed(milliseconds < 100 ? 2 : 1))} s`;
  const seconds = Math.round(milliseconds / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
