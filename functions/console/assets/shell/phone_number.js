// Phone numbers as people type them.

/** E.164 without separators; null if the text is no number. The API refuses `(0)`, too: it is not dialled from abroad. */
export function asNumber(text) {
  const plain = String(text).replaceAll(/\s/g, '').replaceAll(/\((?!0\))|[).-]/g, '');
  return /^\+[1-9]\d{6,14}$/.test(plain) ? plain : null;
}
