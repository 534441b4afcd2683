// Keyboard shortcuts while no field has the focus.

const FIELDS = ['INPUT', 'TEXTAREA', 'SELECT'];

export function isField(element) {
  return FIELDS.includes(element?.tagName) || Boolean(element?.isContentEditable);
}

/** Gives `next`, `previous`, `close`, `help`, `go:{letter}`, or null for a key. */
export function keys(now = Date.now) {
  let leads = -Infinity;
  return ({ key, target, ctrlKey, metaKey, altKey, isComposing }) => {
    if (ctrlKey || metaKey || altKey || isComposing || isField(target)) return null;
    if (now() - leads < 1500) {
      leads = -Infinity;
      return /^[a-z]$/.test(key) ? `go:${key}` : null;
    }
    if (key === 'g') {
      leads = now();
      return null;
    }
    return { j: 'next', k: 'previous', Escape: 'close', '?': 'help' }[key] ?? null;
  };
}
