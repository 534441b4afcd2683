// Requests with a time limit, and no answer from the service or the issuer.

/** In milliseconds; the gateway gives up after 30 seconds. */
const LONGEST = 40_000;

export class Unreachable extends Error {
  constructor(cause, acts = false) {
    super(acts ? 'The service did not answer. Check your connection. A change may have been made all the same: look before you make it again.' : 'The service cannot be reached. Check your connection, then try again.', { cause });
  }
}

/**
 * The whole answer within `limit`, or with `streams` its beginning. The rest of `asked` is for `fetch`.
 *
 * @throws {Unreachable} which says if a request that `acts` may have acted
 */
export async function answerTo(address, { limit = LONGEST, streams = false, acts = false, signal, ...asked } = {}) {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), limit);
  try {
    const answer = await fetch(address, { ...asked, signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal });
    return streams && answer.ok ? answer : new Response((await answer.text()) || null, answer);
  } catch (cause) {
    throw signal?.aborted ? cause : new Unreachable(cause, acts);
  } finally {
    clearTimeout(timer);
  }
}

/** For files, which the browser loads itself. */
export function inTime(promise) {
  return Promise.race([promise, new Promise((_, fail) => setTimeout(() => fail(new Unreachable()), LONGEST))]);
}
