// A form's draft, kept in the tab until it is saved.

import { useEffect, useRef, useState } from '../htm-preact.js';
import { kept, LEFT } from '../session/kept.js';
import { nameOf } from './drafts.js';
import { rebased, SECRET, typeOf } from './schema.js';

/** Members beside a secret's value. */
const BESIDE = ['mode', 'secret', 'type', 'description', 'prompt', 'required', 'schema', 'aiExtension'];

/** The draft for the tab, without the values of secrets, also members of these names. An empty text stands for each: forms never send it. */
export function written(draft, secrets = []) {
  return JSON.stringify(draft, (member, inner) => {
    const named = SECRET.test(member) || secrets.includes(member);
    if (typeOf(inner) === 'object') return named || inner.secret === true ? Object.fromEntries(BESIDE.map((name) => [name, inner[name]])) : inner;
    return named && inner && inner !== true ? '' : inner;
  });
}

/** Whether a version is the one that this person saved; without an answer that names it, the next one is. */
const isOwn = (saved, since) => saved === true || (Boolean(saved) && saved === String(since));

/**
 * The draft `text` on this version: its changes are made to `base`, whose secrets it lacks. A draft without a version was kept by an earlier
 * version of the page, and one with `saved` was begun on that version, which this person had saved.
 */
export function restored(text, since, base) {
  const stored = JSON.parse(text);
  if (!stored) return { first: null, moved: false };
  const moved = stored.since !== '' && stored.since !== since && !isOwn(stored.saved, since);
  return { first: stored.base ? rebased(stored.base, stored.value, base) : moved ? null : stored.value, moved };
}

/**
 * `{value, set, kept, moved, changed, forget, discard}`: `kept` says that the draft is an earlier one. Secrets are not kept; `without` takes
 * out those that are no members of their own, `secrets` names others. The changes of an earlier version's draft (`since`) are made to this
 * version: `moved`. A version that comes later takes the place of a value without changes.
 */
export function useDraft(key, begin, since = '', without = (value) => value, secrets = []) {
  const name = nameOf(key);
  const [draft, put] = useState(() => {
    const base = begin();
    const { first, moved } = restored(sessionStorage.getItem(name), since, base);
    return { since, base, value: first ?? base, kept: first !== null, changed: first !== null, moved };
  });
  const leaves = useRef(false);
  leaves.current = draft.changed;
  useEffect(() => {
    const ask = (event) => {
      // A person led to the sign-in comes back to the draft.
      if (leaves.current && kept(LEFT) === null) event.preventDefault();
    };
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, []);
  const store = (newer) => {
    put(newer);
    const { since, value, base, saved } = newer;
    const inTab = (whole) => JSON.parse(written(without(whole), secrets) ?? 'null');
    sessionStorage.setItem(name, JSON.stringify({ since, value: inTab(value), base: since && inTab(base), saved }));
  };
  useEffect(() => {
    if (draft.since === since) return;
    const base = begin();
    const next = { ...draft, since, base, saved: false };
    const own = isOwn(draft.saved, since);
    if (draft.changed) store({ ...next, value: rebased(draft.base, draft.value, base), ...(!own && { kept: true, moved: true }) });
    else put({ ...next, value: base });
  }, [since]);
  const forget = (answer) => {
    sessionStorage.removeItem(name);
    leaves.current = false;
    const version = answer?.version ?? answer?.updated_at;
    put((before) => ({ ...before, base: before.value, kept: false, changed: false, saved: version === undefined || String(version) }));
  };
  const discard = () => {
    forget();
    const base = begin();
    put((before) => ({ ...before, base, value: base, saved: false }));
  };
  return { ...draft, set: (value) => store({ ...draft, value, changed: true }), kept: draft.kept && draft.changed, forget, discard };
}
