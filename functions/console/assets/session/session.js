// The person signed in on this tab. Tokens are in sessionStorage: they end with the tab, and no other tab has them.

import { claimsOf, codeIn, endOfSession, redeem, refresh, unverified } from './identity.js';
import { discover, SignInFailed } from './issuer.js';
import { forget, keep, kept, LEFT, PENDING, PERSON, TOKENS } from './kept.js';
import { SignInNeeded } from '../shell/problems.js';

/** Before a token ends, in milliseconds. */
const EARLY = 60_000;

export class Session {
  #settings;
  #found = null;
  #renewal = null;

  constructor(settings) {
    this.#settings = settings;
    // Earlier versions of the page kept tokens alone.
    if (kept(PERSON) === null && this.claims?.sub) keep(PERSON, this.claims.sub);
  }

  /** Null without a sign-in. The token may have expired. */
  get claims() {
    const tokens = kept(TOKENS);
    return tokens && unverified(tokens.id_token);
  }

  /** The sign-in shows `told`: `{problem?, everywhere?, begin?}`. Forms keep their drafts in the tab. */
  leave(told) {
    forget(TOKENS);
    keep(LEFT, told);
    location.reload();
  }

  /** If the address is a return from the issuer; the requested address then replaces it. */
  async complete() {
    const { search, pathname } = location;
    if (!/[?&]state=/.test(search)) return;
    const pending = kept(PENDING);
    history.replaceState(null, '', pathname + (pending?.asked ?? ''));
    forget(PENDING);
    this.#found = pending?.found ?? null;
    const found = await this.#discovered();
    const code = codeIn(search, pending, found);
    if (code === null) return;
    const { client_id } = this.#settings;
    const tokens = await redeem(found, { client_id, code, pending });
    const { sub } = claimsOf(tokens.id_token, { issuer: found.issuer, client_id, nonce: pending.nonce });
    if (kept(PERSON) !== sub) sessionStorage.clear();
    keep(PERSON, sub);
    this.#keep(tokens);
  }

  /**
   * A token for the API: the id token, whose audience is this client. It is renewed in time, or on demand.
   *
   * @throws {SignInNeeded} if there is none and none can be had, and {Unreachable} if the issuer did not answer
   */
  async token({ renewed = false } = {}) {
    const tokens = kept(TOKENS);
    if (!tokens) throw new SignInNeeded();
    const ends = (unverified(tokens.id_token)?.exp ?? 0) * 1000;
    if (!renewed && ends > Date.now() + EARLY) return tokens.id_token;
    if (tokens.refresh_token) {
      // A refresh token may work only once.
      this.#renewal ??= this.#renew(tokens).finally(() => {
        this.#renewal = null;
      });
      const renewal = await this.#renewal.catch((error) => {
        if (renewed || ends <= Date.now()) throw error;
      });
      if (renewal) return renewal;
    }
    if (!renewed && ends > Date.now()) return tokens.id_token;
    throw new SignInNeeded();
  }

  async #renew(before) {
    try {
      const found = await this.#discovered();
      const { client_id } = this.#settings;
      const tokens = await refresh(found, { client_id, refresh_token: before.refresh_token });
      const subject = unverified(before.id_token)?.sub;
      claimsOf(tokens.id_token, { issuer: found.issuer, client_id, subject });
      this.#keep(tokens);
      return tokens.id_token;
    } catch (error) {
      if (error instanceof SignInFailed) return null;
      throw error;
    }
  }

  /** Gives the issuer's sign-out address, if there is one. */
  async end() {
    const tokens = kept(TOKENS);
    sessionStorage.clear();
    const found = await this.#discovered().catch(() => null);
    const back = location.origin + location.pathname;
    return endOfSession(found, { client_id: this.#settings.client_id, id_token: tokens?.id_token, back });
  }

  async #discovered() {
    this.#found ??= await discover(this.#settings.openid_configuration);
    return this.#found;
  }

  #keep({ id_token, refresh_token }) {
    keep(TOKENS, { id_token, refresh_token });
  }
}
