// Data for a view, read while it is shown.

import { useEffect, useRef, useState } from '../htm-preact.js';
import { Poller } from './poller.js';
import { NO_ROWS, revealed, shownOf, withNew, withNewest, withOlder, withOne, without } from './rows.js';

const LIST_EVERY = 3_000;
/** Rows of a page. */
const PAGE = 50;
/** Empty pages that one press goes through. */
const MOST_EMPTY = 10;

/** Data of `read` as `{data, error, at, again}`; another `key` begins anew, null reads nothing. Without `every` it is read until it answers. */
export function useLive(key, read, every = () => null) {
  const [known, know] = useState({ key: null });
  const poller = useRef(null);
  useEffect(() => {
    if (key === null) return undefined;
    know({ key });
    const told = ({ data, error }) =>
      know((before) => (error ? { ...before, error } : { key, data, at: new Date().toISOString() }));
    poller.current = new Poller({ read, told, every });
    poller.current.start();
    return () => poller.current.stop();
  }, [key]);
  const { data, error, at } = known.key === key ? known : {};
  return { data, error, at, again: () => poller.current?.now(), put: (newer) => know((before) => ({ ...before, data: newer })) };
}

/** A list as `rows`, with the person's actions: `reveal`, `more`, `again`, `put`, `add`, `drop`. `read(cursor)` gives a page of at most `limit` rows. */
export function useRows(key, read, limit = PAGE) {
  const [rows, set] = useState({ key, ...NO_ROWS });
  const [state, tell] = useState({});
  const shown = useRef(rows);
  shown.current = rows.key === key ? rows : { key, ...NO_ROWS };
  const poller = useRef(null);
  const acts = useRef(0);
  const change = (changed) => {
    shown.current = changed;
    set(changed);
  };
  const act = (changed) => {
    acts.current += 1;
    change(changed);
  };
  const newest = async () => {
    const before = acts.current;
    const page = await read(null);
    // The page may be older than the person's change.
    return acts.current === before ? page : newest();
  };
  useEffect(() => {
    change({ key, ...NO_ROWS });
    tell({});
    const told = ({ data, error }) => {
      if (error) return tell((before) => ({ ...before, error }));
      tell(({ older }) => ({ older, at: new Date().toISOString() }));
      return change({ key, ...withNewest(shown.current, data, limit) });
    };
    poller.current = new Poller({ read: newest, told, every: () => LIST_EVERY });
    poller.current.start();
    return () => poller.current.stop();
  }, [key]);
  const more = async () => {
    const stands = () => shown.current.key === key && shown.current.items;
    tell((before) => ({ ...before, older: true }));
    let error;
    try {
      // Pages of a filtered list may be empty and go on.
      for (let pages = 0, found = 0; pages < MOST_EMPTY && found === 0 && shown.current.next; pages += 1) {
        const page = await read(shown.current.next);
        if (!stands()) return;
        found = page.items.length;
        change(withOlder(shown.current, page));
      }
    } catch (failure) {
      error = failure;
    }
    if (stands()) tell((before) => ({ ...before, older: false, ...(error && { error }) }));
  };
  const { fresh, next } = shown.current;
  return {
    items: shownOf(shown.current),
    fresh,
    next,
    ...state,
    more,
    again: () => poller.current?.now(),
    reveal: () => change(revealed(shown.current)),
    put: (item) => act(withOne(shown.current, item)),
    add: (item) => act(withNew(shown.current, item)),
    drop: (id) => act(without(shown.current, id)),
  };
}
