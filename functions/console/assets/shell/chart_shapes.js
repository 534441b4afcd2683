// The geometry of charts: numbers in, coordinates out.

/** Round steps from zero over the values, lowest first. */
export function ticks(values, wanted = 5) {
  const finite = values.filter(Number.isFinite);
  const low = Math.min(0, ...finite);
  const high = Math.max(0, ...finite);
  if (low === high) return [0, 1];
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const first = Math.floor(low / step);
  const last = Math.ceil(high / step);
  // Multiples, since sums of 0.1 drift.
  return Array.from({ length: last - first + 1 }, (_, place) => Number(((first + place) * step).toPrecision(12)));
}

/** A linear map. */
export function scale([from, to], [start, end]) {
  return (value) => start + ((value - from) / (to - from || 1)) * (end - start);
}

/** Around 0, 0 with radius 1: `{path, share}` per value; only positive values have one. */
export function slices(values) {
  const parts = values.map((value) => (Number.isFinite(value) && value > 0 ? value : 0));
  const sum = parts.reduce((total, part) => total + part, 0);
  let turned = 0;
  return parts.map((part) => {
    const share = sum === 0 ? 0 : part / sum;
    const path = share === 0 ? '' : slice(turned, turned + share);
    turned += share;
    return { path, share };
  });
}

function slice(from, to) {
  // An arc from a point to itself is nothing: a whole pie is two halves.
  if (to - from > 0.9999) return 'M0 -1A1 1 0 0 1 0 1A1 1 0 0 1 0 -1Z';
  const at = (share) => `${Math.sin(share * 2 * Math.PI).toFixed(4)} ${(-Math.cos(share * 2 * Math.PI)).toFixed(4)}`;
  return `M0 0L${at(from)}A1 1 0 ${to - from > 0.5 ? 1 : 0} 1 ${at(to)}Z`;
}

/** Around all markers, with some room: `{west, east, south, north}` in degrees. */
export function bounds(markers) {
  const longitudes = markers.map((marker) => marker.longitude);
  const latitudes = markers.map((marker) => marker.latitude);
  const room = (low, high, limit) => {
    const more = Math.max((high - low) * 0.15, 0.01);
    return [Math.max(low - more, -limit), Math.min(high + more, limit)];
  };
  const [west, east] = room(Math.min(...longitudes), Math.max(...longitudes), 180);
  const [south, north] = room(Math.min(...latitudes), Math.max(...latitudes), 90);
  return { west, east, south, north };
}
