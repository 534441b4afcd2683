// What a person can do here, and what becomes of it. Everything that is shown stands in the state:
//
// - `phase`: `starting`, `signed-out`, `choosing` (an organization), `chatting` or `broken`
// - `person`: name or e-mail address; `organization`, `organizations`: slugs
// - `threads`: `{items, next, loading}`; `conversation`: see conversation.js; `loading`: whether one is being read
// - `notice`: `{text, kind: 'problem' | 'news', action?: {label, act}}`
// - `unanswered`: `{id, text}` of a message that got no answer
// - `stopping`: whether the person has asked for the end of the answer
// - `announcement`: what is said to those who listen
// - `signOutEverywhere`: address where the issuer ends its own session

import { BrokenOff } from './ag_ui.js';
import { applied, conversation, ended, lastAnswer, said, unsaid } from './conversation.js';
import { SignInFailed } from './identity.js';
import { organizationsIn, Refused, SignInNeeded, Unreachable } from './problems.js';

const THREAD = 'switchboard.thread';
const ORGANIZATION = 'switchboard.organization';
const ORGANIZATIONS = 'switchboard.organizations';
/** How long a run may go on after it was asked to stop, in milliseconds. */
const STOPS_WITHIN = 15_000;

export class Chat {
  #state;
  #session;
  #api;
  #reading = null;

  constructor({ state, session, api }) {
    this.#state = state;
    this.#session = session;
    this.#api = api;
  }

  /** What is shown first. */
  async start() {
    try {
      await this.#session.complete();
    } catch (error) {
      this.#state.set({ phase: 'signed-out' });
      return this.#problem(error);
    }
    const { claims } = this.#session;
    if (!claims) return this.#state.set({ phase: 'signed-out' });
    this.#state.set({ person: claims.name ?? claims.email ?? claims.sub });
    this.#api.organization = sessionStorage.getItem(ORGANIZATION);
    const organizations = sessionStorage.getItem(ORGANIZATIONS)?.split(' ') ?? [];
    this.#state.set({ organization: this.#api.organization, organizations });
    await this.#enter();
  }

  async signIn() {
    this.#state.set({ notice: null });
    try {
      await this.#session.begin();
    } catch (error) {
      this.#problem(error);
    }
  }

  async signOut() {
    this.#leave();
    this.#state.set({ phase: 'signed-out', person: null, organization: null, organizations: [], notice: null });
    this.#state.set({ threads: none(), conversation: conversation(null), signOutEverywhere: null, unanswered: null });
    this.#announce('You are signed out.');
    this.#api.organization = null;
    this.#state.set({ signOutEverywhere: await this.#session.end() });
  }

  async choose(organization) {
    this.#leave();
    sessionStorage.setItem(ORGANIZATION, organization);
    sessionStorage.removeItem(THREAD);
    this.#api.organization = organization;
    this.#state.set({ organization, threads: none(), notice: null });
    await this.#enter();
  }

  newThread() {
    this.#leave();
    this.#open(crypto.randomUUID());
    this.#announce('A new conversation.');
  }

  async openThread(thread) {
    this.#leave();
    this.#open(thread);
    await this.#reload();
    if (!this.#state.get().notice) this.#announce('The conversation is open.');
  }

  /** Whether it is gone. */
  async deleteThread(thread) {
    try {
      await this.#api.deleteThread(thread);
    } catch (error) {
      // Gone is gone.
      if (!(error instanceof Refused && error.status === 404)) {
        this.#problem(error);
        return false;
      }
    }
    const { threads } = this.#state.get();
    this.#state.set({ threads: { ...threads, items: threads.items.filter((item) => item.thread_id !== thread) } });
    if (this.#state.get().conversation.thread === thread) this.newThread();
    this.#announce('The conversation was deleted.');
    return true;
  }

  async moreThreads() {
    const { threads } = this.#state.get();
    await this.#readThreads(threads.next, threads.items).catch((error) => this.#problem(error));
  }

  /** Sends a message. Gives false if it was not taken, so that it can go back to where it was written. */
  async send(text, id = crypto.randomUUID()) {
    const before = this.#state.get().conversation;
    this.#show(said(before, { id, text }));
    const taken = await this.#answer({ message: { id, text } });
    this.#waitsAgain(taken, before);
    return taken;
  }

  /** Sends the message again that got no answer; under its name of before, so nothing happens twice. */
  async sendAgain() {
    const { unanswered } = this.#state.get();
    if (unanswered) await this.send(unanswered.text, unanswered.id);
  }

  /** Says yes or no to what waits. */
  async decide(approved) {
    const { conversation: before } = this.#state.get();
    if (!before.waiting) return;
    this.#show({ ...before, waiting: null });
    const taken = await this.#answer({ decision: { id: before.waiting.id, approved } });
    this.#waitsAgain(taken, before);
  }

  /** What waited still does if nothing was taken. */
  #waitsAgain(taken, before) {
    const { conversation: of } = this.#state.get();
    if (!taken && of.thread === before.thread) this.#show({ ...of, waiting: before.waiting });
  }

  async stop() {
    const { conversation: of } = this.#state.get();
    const reading = this.#reading;
    if (!reading || this.#state.get().stopping) return;
    this.#state.set({ stopping: true });
    this.#announce('Stopping.');
    reading.late = setTimeout(() => reading.abort(), STOPS_WITHIN);
    try {
      await this.#api.stop(of.thread, reading.run);
    } catch (error) {
      this.#state.set({ stopping: false });
      clearTimeout(reading.late);
      this.#problem(error);
    }
  }

  dismiss() {
    this.#state.set({ notice: null });
  }

  /** The first page of threads, and the thread that was open before. */
  async #enter() {
    try {
      await this.#readThreads();
    } catch (error) {
      const organizations = organizationsIn(error);
      if (organizations) {
        sessionStorage.setItem(ORGANIZATIONS, organizations.join(' '));
        return this.#state.set({ phase: 'choosing', organizations });
      }
      if (error instanceof SignInNeeded) {
        this.#state.set({ phase: 'signed-out', person: null });
        return this.#say({ text: error.message, kind: 'problem' });
      }
      const lost = error instanceof Refused && error.status === 404;
      if (lost && this.#api.organization) {
        // They have left it, or it is gone.
        sessionStorage.removeItem(ORGANIZATION);
        this.#api.organization = null;
        this.#state.set({ organization: null });
        return this.#enter();
      }
      this.#state.set({ phase: 'broken' });
      const nobody = 'You belong to no organization here. Ask an owner of yours to add you, then try again.';
      return this.#problem(lost ? new Error(nobody) : error, { label: 'Try again', act: () => this.#enter() });
    }
    this.#state.set({ phase: 'chatting', notice: null });
    const before = sessionStorage.getItem(THREAD);
    this.#open(before ?? crypto.randomUUID());
    if (before && this.#state.get().threads.items.some((item) => item.thread_id === before)) await this.#reload();
  }

  async #readThreads(cursor = null, earlier = []) {
    this.#state.set({ threads: { ...this.#state.get().threads, loading: true } });
    try {
      const page = await this.#api.threads(cursor);
      const known = new Set(earlier.map((item) => item.thread_id));
      const items = [...earlier, ...page.items.filter((item) => !known.has(item.thread_id))];
      this.#state.set({ threads: { items, next: page.next_cursor, loading: false } });
    } catch (error) {
      this.#state.set({ threads: { ...this.#state.get().threads, loading: false } });
      throw error;
    }
  }

  #open(thread) {
    sessionStorage.setItem(THREAD, thread);
    this.#state.set({ conversation: conversation(thread), unanswered: null, notice: null, answering: false, stopping: false });
  }

  /** Stops listening to what goes on; it goes on all the same. */
  #leave() {
    this.#reading?.abort();
    this.#reading = null;
  }

  #show(of) {
    this.#state.set({ conversation: of });
  }

  /** One run, from its request to its end. Whether it was taken. */
  async #answer({ message, decision }) {
    this.#leave();
    const reading = Object.assign(new AbortController(), { run: crypto.randomUUID(), late: null });
    this.#reading = reading;
    const { thread } = this.#state.get().conversation;
    this.#state.set({ notice: null, unanswered: null, stopping: false, answering: true });
    this.#announce('The answer is being written.');
    const mine = () => this.#reading === reading;
    let begun = false;
    try {
      const input = { thread, run: reading.run, message, decision, signal: reading.signal };
      for await (const event of this.#api.run(input)) {
        if (!mine()) return true;
        begun = true;
        this.#show(applied(this.#state.get().conversation, event));
      }
      this.#finished(message);
      return true;
    } catch (error) {
      if (!mine()) return true;
      return await this.#failed(error, { begun, message });
    } finally {
      clearTimeout(reading.late);
      if (mine()) {
        this.#reading = null;
        this.#state.set({ answering: false, stopping: false });
        this.#readThreads().catch(() => {});
      }
    }
  }

  #finished(message) {
    const { conversation: of, stopping } = this.#state.get();
    if (of.failure) {
      this.#state.set({ unanswered: message ?? null });
      return this.#problem(new Error(`${of.failure.message}`));
    }
    if (stopping) {
      this.#say({ text: 'You stopped the answer.', kind: 'news' });
      return this.#announce('Stopped.');
    }
    this.#announce(of.waiting ? 'Your consent is asked for.' : `Answer: ${lastAnswer(of)}`);
  }

  /** A run that did not end as it should. Whether its message was taken. */
  async #failed(error, { begun, message }) {
    const shown = ended(this.#state.get().conversation);
    this.#show(shown);
    const stopped = error.name === 'AbortError';
    const mayHaveCome = begun || stopped || error instanceof BrokenOff || error instanceof Unreachable;
    if (!mayHaveCome) {
      if (message) this.#show(unsaid(shown, message.id));
      this.#problem(error);
      return false;
    }
    // Nobody knows how far it came, so the thread is asked, and nothing is sent again by itself.
    const read = await this.#reload();
    const { conversation: of } = this.#state.get();
    const asked = message && read ? questionIn(of, message.text, questions(shown).length) : null;
    if (message && read && !asked) this.#show(ended(said(of, message)));
    let text = 'The answer broke off. What is known of the conversation is shown; your message was not sent again.';
    if (stopped) text = 'You stopped the answer. What there is of it is shown.';
    if (error instanceof Unreachable) text = `${error.message} Your message may have arrived; it was not sent again.`;
    const since = asked ? of.items.slice(of.items.indexOf(asked)) : [];
    const answered = of.waiting || since.some((item) => item.role === 'assistant');
    this.#state.set({ unanswered: message && !stopped && !answered ? message : null });
    this.#say({ text, kind: 'problem', action: AGAIN(this) });
    return true;
  }

  /** Reads the open thread again. */
  async reload() {
    this.#state.set({ notice: null });
    await this.#reload();
  }

  /** The thread as it is kept. Whether it could be read; if not, what is shown stays. */
  async #reload() {
    const { thread, items } = this.#state.get().conversation;
    this.#state.set({ loading: true });
    try {
      let read = { ...conversation(thread) };
      for await (const event of this.#api.history(thread)) read = applied(read, event);
      if (this.#state.get().conversation.thread !== thread) return false;
      if (read.failure) throw new Error(read.failure.message);
      // A thread that nobody has kept yet says nothing.
      this.#show(read.items.length === 0 ? { ...read, items } : read);
      return true;
    } catch (error) {
      if (this.#state.get().conversation.thread === thread && !(error instanceof Refused && error.status === 404)) {
        this.#problem(error, AGAIN(this));
      }
      return false;
    } finally {
      this.#state.set({ loading: false });
    }
  }

  #problem(error, action = null) {
    if (error instanceof SignInNeeded) {
      return this.#say({ text: error.message, kind: 'problem', action: { label: 'Sign in again', act: () => this.signIn() } });
    }
    const broke = error instanceof BrokenOff;
    const known = [Refused, Unreachable, SignInFailed, Error].includes(error.constructor);
    const text = broke ? 'The conversation could not be read to its end. Try again.' : known ? error.message : UNEXPECTED;
    if (!known && !broke) console.error(error);
    this.#say({ text, kind: 'problem', action });
  }

  #say(notice) {
    this.#state.set({ notice });
  }

  #announce(announcement) {
    this.#state.set({ announcement });
  }
}

const UNEXPECTED = 'Something went wrong in this page. Load it again; what you have written is kept.';

const AGAIN = (chat) => ({ label: 'Load the conversation again', act: () => chat.reload() });

const questions = (of) => of.items.filter((item) => item.role === 'user');

/** The last question, if it is this one and as many were asked as we know of: people say "yes" more than once. */
function questionIn(of, text, count) {
  const asked = questions(of);
  return asked.length >= count && asked.at(-1)?.text === text ? asked.at(-1) : null;
}

const none = () => ({ items: [], next: null, loading: false });

/** The state before anything is known. */
export const BEGINNING = {
  phase: 'starting',
  person: null,
  organization: null,
  organizations: [],
  threads: none(),
  conversation: conversation(null),
  loading: false,
  answering: false,
  stopping: false,
  notice: null,
  unanswered: null,
  announcement: '',
  signOutEverywhere: null,
};
