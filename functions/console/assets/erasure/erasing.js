// The requests of an erasure, in sequence until it is complete.

const WORDS = { threads: 'Conversations' };

export function wordsOf(name) {
  return WORDS[name] ?? name[0].toUpperCase() + name.slice(1).replaceAll('_', ' ');
}

/** Tells the counts so far after each answer. */
export async function erase(ask, phone_number, { told = () => {}, stopped = () => false } = {}) {
  let found = { deleted: {}, runs_under_way: [], complete: false, next_cursor: null, phone_number };
  do {
    const answer = await ask({ phone_number, ...(found.next_cursor && { cursor: found.next_cursor }) });
    const deleted = { ...found.deleted };
    for (const [name, count] of Object.entries(answer.deleted)) deleted[name] = (deleted[name] ?? 0) + count;
    found = { ...answer, deleted, runs_under_way: [...new Set([...found.runs_under_way, ...answer.runs_under_way])] };
    told(found);
  } while (found.next_cursor && !stopped());
  return found;
}
