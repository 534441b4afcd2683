// Who has signed in on this tab. Tokens are kept in sessionStorage: they end with the tab, and no other tab has them.

import * as identity from './identity.js';
import { discover, SignInFailed } from './issuer.js';
import { forget, keep, kept, LEFT, PENDING, TOKENS } from './kept.js';
import { SignInNeeded } from '../shell/problems.js';

/** A token is renewed this long before it ends, in milliseconds. */
const EARLY = 60_000;

export class Session {
  #settings;
  #found = null;
  #renewal = null;

  constructor(settings) {
    this.#settings = settings;
  }

  /** The claims of the signed-in person; null if nobody is. Their token may have expired. */
  get claims() {
    const tokens = kept(TOKENS);
    return tokens && identity.unverified(tokens.id_token);
  }

  /** Leads to the sign-in, which says what is `told`: `{problem?, everywhere?, begin?}`. What is written in forms stays in the tab. */
  leave(told) {
    forget(TOKENS);
    keep(LEFT, told);
    location.reload();
  }

  /** Ends a sign-in if the address says that one has come back; in its place comes the address that was asked for. */
  async complete() {
    const { search, pathname } = location;
    if (!/[?&]state=/.test(search)) return;
    const pending = kept(PENDING);
    history.replaceState(null, '', pathname + (pending?.asked ?? ''));
    forget(PENDING);
    this.#found = pending?.found ?? null;
    const found = await this.#discovered();
    const code = identity.codeIn(search, pending, found);
    if (code === null) return;
    const { client_id } = this.#settings;
    const tokens = await identity.redeem(found, { client_id, code, pending });
    identity.claimsOf(tokens.id_token, { issuer: found.issuer, client_id, nonce: pending.nonce });
    this.#keep(tokens);
  }

  /**
   * A token for the API: the id token, whose audience is this client. It is renewed if it ends soon, or if it must be.
   *
   * @throws {SignInNeeded} if there is none and none can be had
   */
  async token({ renewed = false } = {}) {
    const tokens = kept(TOKENS);
    if (!tokens) throw new SignInNeeded();
    const ends = (identity.unverified(tokens.id_token)?.exp ?? 0) * 1000;
    if (!renewed && ends > Date.now() + EARLY) return tokens.id_token;
    if (tokens.refresh_token) {
      // Concurrent callers share one renewal: a refresh token may work only once.
      this.#renewal ??= this.#renew(tokens).finally(() => {
        this.#renewal = null;
      });
      const renewal = await this.#renewal;
      if (renewal) return renewal;
    }
    if (!renewed && ends > Date.now()) return tokens.id_token;
    throw new SignInNeeded();
  }

  async #renew(before) {
    try {
      const found = await this.#discovered();
      const { client_id } = this.#settings;
      const tokens = await identity.refresh(found, { client_id, refresh_token: before.refresh_token });
      const subject = identity.unverified(before.id_token)?.sub;
      identity.claimsOf(tokens.id_token, { issuer: found.issuer, client_id, subject });
      this.#keep(tokens);
      return tokens.id_token;
    } catch (error) {
      if (error instanceof SignInFailed) return null;
      throw error;
    }
  }

  /** Forgets everybody here. Gives the address where one is signed out at the issuer, too, if there is one. */
  async end() {
    const tokens = kept(TOKENS);
    sessionStorage.clear();
    const found = await this.#discovered().catch(() => null);
    const back = location.origin + location.pathname;
    return identity.endOfSession(found, { client_id: this.#settings.client_id, id_token: tokens?.id_token, back });
  }

  async #discovered() {
    this.#found ??= await discover(this.#settings.openid_configuration);
    return this.#found;
  }

  #keep({ id_token, refresh_token }) {
    keep(TOKENS, { id_token, refresh_token });
  }
}
