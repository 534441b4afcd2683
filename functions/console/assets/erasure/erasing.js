// The requests of an erasure, in sequence until it is complete.

const WORDS = { threads: 'Conversations' };

export function wordsOf(name) {
  return WORDS[name] ?? name[0].toUpperCase() + name.slice(1).replaceAll('_', ' ');
}

/** Tells the counts so far after each answer. */
export async function erase(ask, phone_number, { told = () => {}, stopped = () => false } = {}) {
  let found = { deleted: {}, calls_under_way: [], runs_under_way: [], complete: false, next_cursor: null, phone_number };
  do {
    const answer = await ask({ phone_number, ...(found.next_cursor && { cursor: found.next_cursor }) });
    const deleted = { ...found.deleted };
    for (const [name, count] of Object.entries(answer.deleted)) deleted[name] = (deleted[name] ?? 0) + count;
    const all = (name) => [...new Set([...found[name], ...(answer[name] ?? [])])];
    found = { ...answer, deleted, calls_under_way: all('calls_under_way'), runs_under_way: all('runs_under_way') };
    told(found);
  } while (found.next_cursor && !stopped());
  return found;
}
