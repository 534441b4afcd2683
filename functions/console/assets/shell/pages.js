// A list that is read over several pages.

/** At most so many are read. */
const MOST_PAGES = 5;

/** The pages as one; its `next_cursor` leads to things that were not read. */
export async function pages(read) {
  let page = await read();
  for (let count = 1; page.next_cursor && count < MOST_PAGES; count += 1) {
    const older = await read(page.next_cursor);
    page = { ...older, items: [...page.items, ...older.items] };
  }
  return page;
}
