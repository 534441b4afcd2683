// Budgets and their use.

const DOLLARS = { style: 'currency', currency: 'USD' };
const KNOWN = {
  executions_per_hour: ['Executions of tools, this hour', 'Over it, agents are told that a tool cannot be used now.'],
  runs_per_hour: ['Runs started by the API, this hour', 'Over it, POST /api/{slug}/runs is refused; automations go on.'],
  platform_cost_per_month: ['Models on the platform’s key, this month', 'Over it, runs end and chats are refused until the month is over.', DOLLARS],
  own_cost_per_month: ['Models on your own key, this month', 'Over it, runs end and chats are refused until the month is over.', DOLLARS],
};

const shown = (amount, unit) => amount.toLocaleString('en', unit);

/** `{id, word, used, limit, share, until, beyond}` of each budget; a newer version's keeps its name. */
export function budgetsOf(usage) {
  return Object.entries(usage ?? {}).filter(([, budget]) => budget.limit !== undefined).map(([id, { used, limit, until }]) => {
    const [word, beyond = '', unit] = KNOWN[id] ?? [id.replaceAll('_', ' ')];
    return { id, word, beyond, until, used: shown(used, unit), limit: shown(limit, unit), share: limit > 0 ? Math.min(used / limit, 1) : 1 };
  });
}

/** By day. */
export const SERIES = [
  { id: 'executions', word: 'Executions' },
  { id: 'runs', word: 'Runs started by the API' },
  { id: 'platform_cost', word: 'Platform’s key', unit: DOLLARS },
  { id: 'own_cost', word: 'Own key', unit: DOLLARS },
];

/** For `Bars`, oldest first, from the first counted day on; null if nothing was counted. */
export function chartOf(days, id) {
  const { word, unit } = SERIES.find((one) => one.id === id);
  const known = days.filter((day) => typeof day[id] === 'number');
  if (known.length === 0) return null;
  const amount = (value) => shown(value, unit);
  const bars = known.map((day, place) => ({ word: day.date, value: day[id], label: place % 7 === 0 ? day.date.slice(5) : null }));
  const sum = bars.reduce((total, { value }) => total + value, 0);
  const most = bars.reduce((best, bar) => (bar.value > best.value ? bar : best));
  return { bars, head: ['Day', word], shown: amount, whole: !unit, says: `${word}: ${amount(sum)} in ${known.length} ${known.length === 1 ? 'day' : 'days'}${sum ? `, most on ${most.word} with ${amount(most.value)}` : ''}.` };
}
