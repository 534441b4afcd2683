// The rows of a list that is read again and again: what is read does not move.

/** `items` are shown, `fresh` wait to be shown, `next` leads to older ones. */
export const NO_ROWS = { items: null, fresh: [], next: null };

/** The newest page: known rows get their new values in their place, new ones wait, the first ones are shown at once. */
export function withNewest(rows, page) {
  if (rows.items === null || (rows.items.length === 0 && rows.fresh.length === 0)) {
    return { ...rows, items: page.items, next: page.next_cursor };
  }
  const newer = new Map(page.items.map((item) => [item.id, item]));
  const items = rows.items.map((item) => newer.get(item.id) ?? item);
  const shown = new Set(items.map((item) => item.id));
  const kept = rows.fresh.filter((item) => !newer.has(item.id));
  const fresh = [...page.items.filter((item) => !shown.has(item.id)), ...kept];
  return { ...rows, items, fresh };
}

/** The rows, with the waiting ones above. */
export function revealed(rows) {
  return { ...rows, items: [...rows.fresh, ...rows.items], fresh: [] };
}

/** The rows with an older page below them. */
export function withOlder(rows, page) {
  const known = new Set([...rows.items, ...rows.fresh].map((item) => item.id));
  return { ...rows, items: [...rows.items, ...page.items.filter((item) => !known.has(item.id))], next: page.next_cursor };
}

/** The rows with this one's new values. */
export function withOne(rows, item) {
  return { ...rows, items: rows.items?.map((known) => (known.id === item.id ? item : known)) ?? null };
}

/** The rows with a new one above them. */
export function withNew(rows, item) {
  return { ...rows, items: [item, ...(rows.items ?? []).filter(({ id }) => id !== item.id)] };
}

/** The rows without the one that is gone. */
export function without(rows, gone) {
  return { ...rows, items: rows.items?.filter(({ id }) => id !== gone) ?? null };
}
