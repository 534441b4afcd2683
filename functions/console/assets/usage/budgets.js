// Budgets, with how much of each is used.

const KNOWN = {
  executions_per_hour: ['Executions of tools, this hour', 'Over it, agents are told that a tool cannot be used now.'],
  runs_per_hour: ['Runs of automations, this hour', 'Over it, no further run begins.'],
  platform_cost_per_month: ['Models on the platform’s key, this month', 'Over it, runs end and chats are refused until the month is over.', 'dollars'],
  own_cost_per_month: ['Models on your own key, this month', 'Over it, runs end and chats are refused until the month is over.', 'dollars'],
};

const shown = (amount, unit) => (unit === 'dollars' ? `$${amount.toFixed(2)}` : amount.toLocaleString('en'));

/** `{id, word, used, limit, share, until, beyond}` of each budget; one of a newer version goes by its name. */
export function budgetsOf(usage) {
  return Object.entries(usage ?? {}).filter(([, budget]) => budget.limit !== undefined).map(([id, { used, limit, until }]) => {
    const [word, beyond = '', unit] = KNOWN[id] ?? [id.replaceAll('_', ' ')];
    return { id, word, beyond, until, used: shown(used, unit), limit: shown(limit, unit), share: limit > 0 ? Math.min(used / limit, 1) : 1 };
  });
}
