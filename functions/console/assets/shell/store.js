// One state and its subscribers.

/** A state that tells its listeners when it changes. */
export function store(initial) {
  let state = initial;
  const listeners = new Set();
  return {
    get: () => state,
    /** Takes over these members. */
    set(changes) {
      state = { ...state, ...changes };
      for (const listener of listeners) listener(state);
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
