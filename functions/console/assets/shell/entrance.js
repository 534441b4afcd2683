// The person, their organization and role. The whole view stands in the state:
//
// - `phase`: `starting`, `choosing` (an organization), `inside` or `broken`
// - `person`: name or e-mail address; `organization`: slug; `role`; `organizations`: slugs to choose from
// - `notice`: `{text, kind: 'problem' | 'news', action?: {label, act}}`
// - `hash`: the address within the page

import { SignInFailed } from '../session/issuer.js';
import { keep, kept } from '../session/kept.js';
import { organizationsIn, Refused, SignInNeeded } from './problems.js';
import { Unreachable } from './unreachable.js';
import { addressOf, route } from './route.js';

const ORGANIZATIONS = 'switchboard.organizations';
/** By organization. */
const ROLES = 'switchboard.roles';
const FIRST = 'home';

export class Entrance {
  #state;
  #session;
  #api;
  /** The slug that was tried last, and the number of tries. */
  #tried = null;
  #entries = 0;

  constructor({ state, session, api }) {
    this.#state = state;
    this.#session = session;
    this.#api = api;
  }

  async start() {
    try {
      await this.#session.complete();
    } catch (error) {
      return this.#session.leave({ problem: sentenceOf(error) });
    }
    this.#state.set({ hash: location.hash });
    const { claims } = this.#session;
    if (!claims) return this.#session.leave({});
    const organizations = sessionStorage.getItem(ORGANIZATIONS)?.split(' ') ?? [];
    this.#state.set({ person: claims.name ?? claims.email ?? claims.sub, organizations });
    await this.#enter(route(location.hash)?.slug ?? null);
  }

  async moved() {
    const hash = location.hash;
    this.#state.set({ hash });
    const slug = route(hash)?.slug ?? null;
    if (this.#entries > 0 && slug !== this.#tried) await this.#enter(slug);
  }

  /** The role may have changed while the page was hidden. */
  async lookedAt() {
    if (document.visibilityState === 'hidden' || this.#state.get().phase !== 'inside') return;
    const known = await this.#api.membership().catch(() => null);
    if (known?.slug !== this.#state.get().organization) return;
    keep(ROLES, { ...kept(ROLES), [known.slug]: known.role });
    this.#state.set({ role: known.role });
  }

  signIn() {
    this.#session.leave({ begin: true });
  }

  async signOut() {
    this.#state.set({ ...BEGINNING, hash: '' });
    history.replaceState(null, '', location.pathname);
    this.#api.forget();
    this.#session.leave({ everywhere: await this.#session.end() });
  }

  /** At the same page. */
  choose(slug) {
    const { page = FIRST } = route(location.hash) ?? {};
    location.hash = addressOf({ slug, page });
    return this.#enter(slug);
  }

  async #enter(slug) {
    const entry = (this.#entries += 1);
    this.#tried = slug;
    this.#api.organization = slug;
    // The last known role stands until the API has answered, another organization's page does not.
    const before = slug && kept(ROLES)?.[slug];
    this.#state.set(before ? { phase: 'inside', organization: slug, role: before, notice: null, hash: location.hash } : { phase: 'starting', notice: null });
    try {
      const known = await this.#api.membership();
      if (entry !== this.#entries) return;
      this.#tried ??= known.slug;
      this.#api.organization = known.slug;
      keep(ROLES, { ...kept(ROLES), [known.slug]: known.role });
      if (!route(location.hash)?.slug) {
        const { page = FIRST, id, query } = route(location.hash) ?? {};
        history.replaceState(null, '', addressOf({ slug: known.slug, page, id, query }));
      }
      this.#state.set({ phase: 'inside', organization: known.slug, role: known.role, notice: null, hash: location.hash });
      if (slug && sessionStorage.getItem(ORGANIZATIONS) === null) this.#others();
    } catch (error) {
      if (entry !== this.#entries || (before && error instanceof Unreachable)) return;
      this.#refused(error, slug);
    }
  }

  /** An address that names an organization does not tell whether there are others: a request that names none does. */
  async #others() {
    const organizations = await this.#api.within(null).membership().then(({ slug }) => [slug], organizationsIn);
    // Nobody may be inside any more.
    if (organizations && this.#state.get().phase === 'inside') this.#know({ organizations });
  }

  #know({ organizations, ...changes }) {
    sessionStorage.setItem(ORGANIZATIONS, organizations.join(' '));
    this.#state.set({ organizations, ...changes });
  }

  #refused(error, slug) {
    const organizations = organizationsIn(error);
    if (organizations) return this.#know({ phase: 'choosing', organizations });
    if (error instanceof SignInNeeded) {
      return this.#session.leave({ problem: error.message });
    }
    this.#state.set({ phase: 'broken' });
    const lost = error instanceof Refused && error.status === 404;
    if (!lost) return this.#problem(error, { label: 'Try again', act: () => this.#enter(slug) });
    if (!slug) return this.#problem(new Error('You belong to no organization here. Ask an owner of yours to add you, then try again.'), { label: 'Try again', act: () => this.#enter(null) });
    const own = { label: 'Go to my organization', act: () => this.#leave() };
    return this.#problem(new Error(`This address is of the organization ${slug}. It does not exist, or you do not belong to it.`), own);
  }

  #leave() {
    history.replaceState(null, '', location.pathname);
    return this.#enter(null);
  }

  #problem(error, action = null) {
    this.#state.set({ notice: { text: sentenceOf(error), kind: 'problem', action } });
  }
}

function sentenceOf(error) {
  const known = [Refused, Unreachable, SignInFailed, SignInNeeded, Error].includes(error.constructor);
  if (!known) console.error(error);
  return known ? error.message : 'Something went wrong in this page. Load it again.';
}

export const BEGINNING = {
  phase: 'starting',
  person: null,
  organization: null,
  role: null,
  organizations: [],
  notice: null,
  hash: '',
};
