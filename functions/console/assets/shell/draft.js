// A form's draft, kept in the tab until it is saved.

import { useEffect, useRef, useState } from '../htm-preact.js';
import { kept, LEFT } from '../session/kept.js';
import { nameOf } from './drafts.js';
import { rebased, SECRET, typeOf } from './schema.js';

/** Members beside a secret's value. */
const BESIDE = ['mode', 'secret', 'type', 'description', 'prompt', 'required', 'schema', 'aiExtension'];

/** The draft for the tab, without the values of secrets. An empty text stands for each: forms never send it. */
export function written(draft) {
  return JSON.stringify(draft, (member, inner) => {
    const named = SECRET.test(member);
    if (typeOf(inner) === 'object') return named || inner.secret === true ? Object.fromEntries(BESIDE.map((name) => [name, inner[name]])) : inner;
    return named && inner && inner !== true ? '' : inner;
  });
}

/** The draft `text` on this version: its changes are made to `base`, whose secrets it lacks. */
export function restored(text, since, base) {
  const stored = JSON.parse(text);
  if (!stored) return { first: null, moved: false };
  const moved = stored.since !== since;
  return { first: stored.base ? rebased(stored.base, stored.value, base) : moved ? null : stored.value, moved };
}

/**
 * `{value, set, kept, moved, changed, forget, discard}`: `kept` says that the draft is an earlier one. Secrets are not kept; `without` takes
 * out those that are no members of their own. The changes of an earlier version's draft (`since`) are made to this version: `moved`.
 */
export function useDraft(key, begin, since = '', without = (value) => value) {
  const name = nameOf(key);
  const [base] = useState(begin);
  const [{ first, moved }] = useState(() => restored(sessionStorage.getItem(name), since, base));
  const [value, put] = useState(first ?? base);
  const [changed, change] = useState(first !== null);
  const leaves = useRef(false);
  leaves.current = changed;
  useEffect(() => {
    const ask = (event) => {
      // A person led to the sign-in comes back to the draft.
      if (leaves.current && kept(LEFT) === null) event.preventDefault();
    };
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, []);
  const forget = () => {
    sessionStorage.removeItem(name);
    leaves.current = false;
    change(false);
  };
  const set = (newer) => {
    put(newer);
    change(true);
    sessionStorage.setItem(name, written({ since, value: without(newer), base: since && without(base) }));
  };
  const discard = () => {
    forget();
    put(begin());
  };
  return { value, set, kept: first !== null && changed, moved, changed, forget, discard };
}
