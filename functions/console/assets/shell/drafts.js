// The names of drafts in the tab.

const DRAFT = 'switchboard.form.';

export function nameOf(key) {
  return DRAFT + key;
}

/** Whether a draft is kept. */
export function isKept(key) {
  return sessionStorage.getItem(nameOf(key)) !== null;
}
