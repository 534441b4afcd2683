// The rights of a role. The API decides; the page says it before somebody tries.

export const ROLES = ['viewer', 'member', 'admin', 'owner'];

export function may(role, least) {
  return ROLES.indexOf(role) >= ROLES.indexOf(least);
}

/** Why something may not be done; null if it may. */
export function whyNot(role, least) {
  return may(role, least) ? null : `This needs the role ${least}; you are ${role === 'admin' || role === 'owner' ? 'an' : 'a'} ${role}. Ask an owner for it.`;
}
