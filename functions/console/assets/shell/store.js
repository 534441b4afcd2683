// A state and its subscribers.

export function store(initial) {
  let state = initial;
  const listeners = new Set();
  return {
    get: () => state,
    /** Merges these members. */
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
