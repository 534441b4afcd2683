// A form's draft, kept in the tab until it is saved.

import { useEffect, useRef, useState } from '../htm-preact.js';
import { SECRET } from './schema.js';

const DRAFT = 'switchboard.form.';
/** The person leaves to sign in, and comes back. */
const SIGNING_IN = 'switchboard.sign-in';

/**
 * `{value, set, kept, changed, forget, discard}`: `kept` marks an earlier draft. Secrets are not kept. A draft of another
 * version (`since`) is ignored.
 */
export function useDraft(key, begin, since = '') {
  const name = DRAFT + key;
  const read = () => {
    const stored = JSON.parse(sessionStorage.getItem(name) ?? 'null');
    return stored?.since === since ? stored.value : null;
  };
  const [first] = useState(read);
  const [value, put] = useState(() => first ?? begin());
  const [changed, change] = useState(first !== null);
  const leaves = useRef(false);
  leaves.current = changed;
  useEffect(() => {
    const ask = (event) => {
      if (leaves.current && sessionStorage.getItem(SIGNING_IN) === null) event.preventDefault();
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
    sessionStorage.setItem(name, JSON.stringify({ since, value: newer }, (member, inner) => (SECRET.test(member) ? undefined : inner)));
  };
  const discard = () => {
    forget();
    put(begin());
  };
  return { value, set, kept: first !== null && changed, changed, forget, discard };
}
