// Parts of a sign-in, kept in sessionStorage: it ends with the tab, and no other tab has it.

export const TOKENS = 'switchboard.tokens';
/** The subject of the last sign-in, to whom the drafts belong. */
export const PERSON = 'switchboard.person';
export const PENDING = 'switchboard.sign-in';
/** The message for a person led to the sign-in. */
export const LEFT = 'switchboard.left';

export function kept(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name));
  } catch {
    return null;
  }
}

export function keep(name, value) {
  sessionStorage.setItem(name, JSON.stringify(value));
}

export function forget(name) {
  sessionStorage.removeItem(name);
}
