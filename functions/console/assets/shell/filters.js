// Filters of a list, in the address, so that a link shows others the same rows.

const HOURS = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 };
const SPANS = [['', 'Any time'], ['1h', 'Last hour'], ['24h', 'Last 24 hours'], ['7d', 'Last 7 days'], ['30d', 'Last 30 days']];
const FIVE_MINUTES = 300_000;

export const SINCE = { name: 'since', word: 'Time', options: SPANS };

/** For the API: spans as a moment, rounded so that the address holds for five minutes. */
export function asked(query, fields, now = Date.now()) {
  return Object.fromEntries(fields.map(({ name }) => {
    const value = query[name] || null;
    const hours = name === 'since' && HOURS[value];
    return [name, hours ? new Date(Math.floor((now - hours * 3_600_000) / FIVE_MINUTES) * FIVE_MINUTES).toISOString() : value];
  }));
}
