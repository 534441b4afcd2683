// The rights of a role, shown before somebody tries. The API decides.

export const ROLES = ['viewer', 'member', 'admin', 'owner'];

export function may(role, least) {
  return ROLES.indexOf(role) >= ROLES.indexOf(least);
}

/** Null if allowed. */
export function whyNot(role, least) {
  return may(role, least) ? null : `This needs the role ${least}; you are ${role === 'admin' || role === 'owner' ? 'an' : 'a'} ${role}. Ask an owner for it.`;
}
