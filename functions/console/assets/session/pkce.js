// Proof Key for Code Exchange (RFC 7636): only the browser that began a sign-in can end it.

/** Without padding. */
export function base64url(bytes) {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** 256 random bits. */
export function secretText() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

/** For the issuer, method S256. */
export async function challenge(verifier) {
  return base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));
}
