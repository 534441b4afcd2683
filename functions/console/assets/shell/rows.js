// The rows of a list that is read repeatedly; rows on the screen do not move.

/** `items`: shown, of the first page; `older`: shown below them, null until asked for; `fresh`: waiting to be shown; `next`: the cursor of older rows. */
export const NO_ROWS = { items: null, older: null, fresh: [], next: null };

/**
 * After a newer first page of at most `limit` rows. Known rows change in their place, new ones above them wait, and rows that the page
 * lacks within its range are gone. A full page without a known row begins the list anew: rows between would never be shown.
 */
export function withNewest(rows, { items: page, next_cursor: next }, limit) {
  const here = new Set(page.map(({ id }) => id));
  const before = [...rows.fresh, ...(rows.items ?? [])];
  const last = before.findLastIndex(({ id }) => here.has(id));
  const full = next !== null && page.length >= limit;
  if (rows.items === null || (full && last === -1)) return { ...NO_ROWS, items: page, next };
  // Newer rows push older ones off a full page, which then ends with a known row.
  const pushed = full && before[last].id === page.at(-1).id ? before.slice(last + 1) : [];
  const older = (next !== null && rows.older?.filter(({ id }) => !here.has(id))) || null;
  const shown = new Set(shownOf(rows).map(({ id }) => id));
  const all = [...page, ...pushed];
  const first = all.findIndex(({ id }) => shown.has(id));
  const from = first === -1 ? (older?.length ? all.length : 0) : first;
  const unchanged = next !== null && (older || pushed.length > 0);
  return { items: all.slice(from), older, fresh: all.slice(0, from), next: unchanged ? rows.next : next };
}

/** All on the screen. */
export function shownOf({ items, older }) {
  return items && [...items, ...(older ?? [])];
}

/** With the waiting rows above. */
export function revealed(rows) {
  return { ...rows, items: [...rows.fresh, ...rows.items], fresh: [] };
}

/** With an older page below. */
export function withOlder(rows, page) {
  const known = new Set([...rows.fresh, ...shownOf(rows)].map(({ id }) => id));
  return { ...rows, older: [...(rows.older ?? []), ...page.items.filter(({ id }) => !known.has(id))], next: page.next_cursor };
}

/** With new values of one row. */
export function withOne(rows, item) {
  return changed(rows, (items) => items.map((known) => (known.id === item.id ? item : known)));
}

/** With a new row above. */
export function withNew(rows, item) {
  const { items, ...others } = without(rows, item.id);
  return { ...others, items: [item, ...(items ?? [])] };
}

/** Without a removed row. */
export function without(rows, gone) {
  return changed(rows, (items) => items.filter(({ id }) => id !== gone));
}

function changed(rows, change) {
  return { ...rows, items: rows.items && change(rows.items), older: rows.older && change(rows.older), fresh: change(rows.fresh) };
}
