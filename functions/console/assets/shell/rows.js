// The rows of a list that is read repeatedly; rows on the screen do not move.

/** `items`: shown; `fresh`: waiting to be shown; `next`: the cursor of older rows. */
export const NO_ROWS = { items: null, fresh: [], next: null };

/** Known rows change in their place, new ones wait, the first page is shown at once. */
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

/** With the waiting rows above. */
export function revealed(rows) {
  return { ...rows, items: [...rows.fresh, ...rows.items], fresh: [] };
}

/** With an older page below. */
export function withOlder(rows, page) {
  const known = new Set([...rows.items, ...rows.fresh].map((item) => item.id));
  return { ...rows, items: [...rows.items, ...page.items.filter((item) => !known.has(item.id))], next: page.next_cursor };
}

/** With new values of one row. */
export function withOne(rows, item) {
  return { ...rows, items: rows.items?.map((known) => (known.id === item.id ? item : known)) ?? null };
}

/** With a new row above. */
export function withNew(rows, item) {
  return { ...rows, items: [item, ...(rows.items ?? []).filter(({ id }) => id !== item.id)] };
}

/** Without a removed row. */
export function without(rows, gone) {
  return { ...rows, items: rows.items?.filter(({ id }) => id !== gone) ?? null };
}
