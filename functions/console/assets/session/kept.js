// What the tab keeps of a sign-in: sessionStorage ends with the tab, and no other tab has it.

export const TOKENS = 'switchboard.tokens';
export const PENDING = 'switchboard.sign-in';
/** What the sign-in tells a person who was led to it. */
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
