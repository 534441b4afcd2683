// The actions of a person. The whole view stands in the state:
//
// - `threads`: `{items, next, loading}`; `conversation`: see conversation.js; `loading`: whether one is being read
// - `notice`: `{text, kind: 'problem' | 'news', action?: {label, act}}`
// - `unanswered`: `{id, text}` of a message that got no answer
// - `readOnly`: why the person may only read, if so
// - `stopping`: the person has asked for the end of the answer
// - `announcement`: a sentence for screen readers

import { BrokenOff } from './ag_ui.js';
import { batches } from './batches.js';
import { applied, conversation, ended, lastAnswer, ofThread, said, unsaid, withEarlier } from './conversation.js';
import { failureOf, Refused, SignInNeeded } from '../shell/problems.js';
import { Unreachable } from '../shell/unreachable.js';
import { fate, isRecent, Unanswered } from './unanswered.js';

const THREAD = 'switchboard.thread';
const DRAFT = 'switchboard.draft';
/** Of a run after a request to stop, in milliseconds. */
const STOPS_WITHIN = 15_000;

export class Chat {
  #state;
  #api;
  #signIn;
  /** An `AbortController` with the `run` that it is about. */
  #reading = null;
  #unanswered = new Unanswered(sessionStorage);
  #left = false;

  constructor({ state, api, signIn }) {
    this.#state = state;
    this.#api = api;
    this.#signIn = signIn;
  }

  /** Also the thread that was open before. */
  async start() {
    this.#left = false;
    this.#state.set({ notice: null });
    const before = sessionStorage.getItem(this.#kept);
    const thread = before ?? crypto.randomUUID();
    // A message may be sent before the threads have come.
    if (this.#state.get().conversation.thread !== thread) this.#open(thread);
    try {
      await this.#readThreads();
    } catch (error) {
      return this.#problem(error, { label: 'Try again', act: () => this.start() });
    }
    const readOnly = await this.#api.whyReadOnly().catch(() => null);
    this.#state.set({ readOnly });
    const { threads } = this.#state.get();
    const isKept = threads.next || threads.items.some((item) => item.thread_id === before) || this.#unanswered.of(thread);
    if (before && isKept && !this.#left && !this.#reading && this.#state.get().conversation.thread === thread) await this.#goOn(thread);
  }

  /** The run goes on all the same. */
  leave() {
    this.#left = true;
    this.#quit();
  }

  #quit() {
    this.#reading?.abort();
    this.#reading = null;
  }

  get #kept() {
    return this.#own(THREAD);
  }

  /** Where the text that is not sent yet is kept. Earlier versions of the page kept it without its organization. */
  get draft() {
    const name = this.#own(DRAFT);
    const former = name !== DRAFT && sessionStorage.getItem(DRAFT);
    if (former) {
      sessionStorage.removeItem(DRAFT);
      if (!sessionStorage.getItem(name)) sessionStorage.setItem(name, former);
    }
    return name;
  }

  /** Each organization has its own open thread and draft. */
  #own(name) {
    return this.#api.organization ? `${name}.${this.#api.organization}` : name;
  }

  newThread() {
    this.#quit();
    this.#open(crypto.randomUUID());
    this.#announce('A new conversation.');
  }

  async openThread(thread) {
    this.#quit();
    this.#open(thread);
    await this.#goOn(thread);
  }

  /** Returns whether it is gone. */
  async deleteThread(thread) {
    try {
      await this.#api.deleteThread(thread);
    } catch (error) {
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
    await this.#olderThreads().catch((error) => this.#problem(error));
  }

  /** Above the shown ones. */
  async loadEarlier() {
    const { conversation: of, loading } = this.#state.get();
    if (!of.earlier || loading) return;
    this.#state.set({ loading: true });
    try {
      const page = await this.#api.messages(of.thread, of.earlier);
      const now = this.#state.get().conversation;
      if (now.thread === of.thread) this.#show(withEarlier(now, page));
      this.#announce('Earlier messages are shown.');
    } catch (error) {
      this.#problem(error);
    } finally {
      this.#state.set({ loading: false });
    }
  }

  /** False if the message was not taken, so that it can go back into the field. */
  async send(text, id = crypto.randomUUID(), again = false) {
    const before = this.#state.get().conversation;
    const after = said(before, { id, text }, { again });
    const resent = again || this.#unanswered.of(before.thread)?.id === id;
    this.#unanswered.keep(before.thread, { id, text }, questions(after));
    this.#show(after);
    const taken = await this.#answer({ message: { id, text }, resent });
    this.#waitsAgain(taken, before);
    return taken;
  }

  /** Under its earlier name, so nothing happens twice. */
  async sendAgain() {
    const { unanswered } = this.#state.get();
    if (unanswered) await this.send(unanswered.text, unanswered.id, true);
  }

  async decide(approved) {
    const { conversation: before } = this.#state.get();
    if (!before.waiting) return;
    this.#show({ ...before, waiting: null });
    const taken = await this.#answer({ decision: { id: before.waiting.id, approved } });
    this.#waitsAgain(taken, before);
  }

  /** If nothing was accepted. */
  #waitsAgain(taken, before) {
    const { conversation: of } = this.#state.get();
    if (!taken && before.waiting && of.thread === before.thread) this.#show({ ...of, waiting: before.waiting });
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

  /** Above the shown older ones. */
  async #readThreads() {
    const page = await this.#threadsAfter(null);
    const { threads } = this.#state.get();
    const newest = new Set(page.items.map((item) => item.thread_id));
    const older = threads.items.filter((item) => !newest.has(item.thread_id));
    // Only a person asks for more than a page: their place in the list stays.
    const next = threads.isLong ? threads.next : page.next_cursor;
    this.#state.set({ threads: { ...threads, items: threads.isLong ? [...page.items, ...older] : page.items, next } });
  }

  async #olderThreads() {
    // A page of expired threads is empty, but not the last one.
    for (let found = 0; found === 0 && this.#state.get().threads.next; ) {
      const page = await this.#threadsAfter(this.#state.get().threads.next);
      const { threads } = this.#state.get();
      const known = new Set(threads.items.map((item) => item.thread_id));
      const more = page.items.filter((item) => !known.has(item.thread_id));
      found = more.length;
      this.#state.set({ threads: { ...threads, items: [...threads.items, ...more], next: page.next_cursor, isLong: true } });
    }
  }

  async #threadsAfter(cursor) {
    this.#state.set({ threads: { ...this.#state.get().threads, loading: true } });
    try {
      return await this.#api.threads(cursor);
    } finally {
      this.#state.set({ threads: { ...this.#state.get().threads, loading: false } });
    }
  }

  #open(thread) {
    sessionStorage.setItem(this.#kept, thread);
    this.#state.set({ conversation: conversation(thread), unanswered: null, notice: null, answering: false, stopping: false });
  }

  #show(of) {
    this.#state.set({ conversation: of });
  }

  /** From here on. */
  #listen() {
    this.#quit();
    this.#reading = Object.assign(new AbortController(), { run: crypto.randomUUID(), late: null });
    return this.#reading;
  }

  #heardOut(reading) {
    clearTimeout(reading.late);
    if (this.#reading !== reading) return;
    this.#reading = null;
    if (this.#state.get().answering) this.#readThreads().catch(() => {});
    this.#state.set({ answering: false, stopping: false, loading: false });
  }

  /** From its request to its end. Returns whether it was taken. */
  async #answer({ message, decision, resent }) {
    const reading = this.#listen();
    const { thread } = this.#state.get().conversation;
    this.#state.set({ notice: null, unanswered: null, stopping: false, answering: true });
    this.#announce('The answer is being written.');
    const mine = () => this.#reading === reading;
    let begun = false;
    try {
      const input = { thread, run: reading.run, message, decision, signal: reading.signal };
      for await (const events of batches(this.#api.run(input))) {
        if (!mine()) return true;
        begun = true;
        this.#show(events.reduce(applied, this.#state.get().conversation));
      }
      const { failure } = this.#state.get().conversation;
      // Only the thread has the outcome.
      if (failure && decision) await this.#reload({ quietly: true });
      this.#finished(message, failure);
      return true;
    } catch (error) {
      if (!mine()) return true;
      return await this.#failed(error, { begun, message, decision, resent });
    } finally {
      this.#heardOut(reading);
    }
  }

  #finished(message, failure) {
    const { conversation: of, stopping } = this.#state.get();
    if (failure) {
      this.#state.set({ unanswered: message ?? null });
      return this.#problem(new Error(failureOf(failure)));
    }
    if (message) this.#unanswered.forget(of.thread);
    if (stopping) {
      this.#say({ text: 'You stopped the answer.', kind: 'news' });
      return this.#announce('Stopped.');
    }
    this.#announce(of.waiting ? 'Your consent is asked for.' : `Answer: ${lastAnswer(of)}`);
  }

  /** Returns whether its message was taken. */
  async #failed(error, { begun, message, decision, resent }) {
    const shown = ended(this.#state.get().conversation);
    this.#show(shown);
    const { thread } = shown;
    const stopped = error.name === 'AbortError';
    const decided = error instanceof Refused && error.code === 'consent_decided';
    // A gateway's own refusal, without a code, does not say whether the turn has begun.
    const unsure = error instanceof BrokenOff || error instanceof Unreachable || (error instanceof Refused && error.status >= 500 && !error.code);
    if (!begun && !stopped && !decided && !unsure) {
      if (error instanceof Refused && error.status === 403) this.#state.set({ readOnly: error.message });
      if (resent) this.#state.set({ unanswered: message });
      else {
        this.#unanswered.forget(thread);
        if (message) this.#show(unsaid(shown, message.id));
      }
      this.#problem(error);
      return false;
    }
    // Only the thread knows the outcome; a turn still in progress is followed to its end.
    const read = await this.#reload();
    if (decided) {
      if (read) this.#say({ text: error.message, kind: 'news' });
      return true;
    }
    const kept = this.#unanswered.of(thread);
    const { conversation: of } = this.#state.get();
    if (of.thread !== thread) return true;
    const found = kept && read ? fate(of, kept) : null;
    const why = unsure && !(error instanceof BrokenOff) ? error.message : 'The answer broke off.';
    if (found === 'answered' || (read && !kept)) {
      this.#unanswered.forget(thread);
      if (stopped) this.#say({ text: 'You stopped the answer. What there is of it is shown.', kind: 'news' });
      else if (decision && of.waiting?.id === decision.id) this.#say({ text: why, kind: 'problem' });
      return true;
    }
    if (message && found === 'absent') this.#show(ended(said(of, message)));
    this.#state.set({ unanswered: message ?? null });
    const next = message ? 'Send the message again; what was done already is not done twice.' : 'Load the conversation again.';
    this.#say({ text: `${why} ${next}`, kind: 'problem', action: message ? null : AGAIN(this) });
    return true;
  }

  async reload() {
    this.#state.set({ notice: null });
    await this.#goOn(this.#state.get().conversation.thread);
  }

  /** Shows events of other tabs. */
  async lookedAt() {
    const { answering, loading, unanswered, conversation: before, threads } = this.#state.get();
    const isKept = threads.items.some((item) => item.thread_id === before.thread);
    const isLong = before.items[0]?.id.startsWith('number-');
    if (answering || loading || unanswered || !isKept || isLong) return;
    const { waiting } = before;
    const read = await this.#reload({ quietly: true });
    const { conversation: of, notice } = this.#state.get();
    if (read && waiting && of.thread === before.thread && of.waiting?.id !== waiting.id && !notice) {
      this.#say({ text: 'Your consent is not needed any more: it was decided in another window, or its time is over.', kind: 'news' });
    }
  }

  /** Then sees to a message left unanswered before the page was loaded. */
  async #goOn(thread) {
    const kept = this.#unanswered.of(thread);
    if (!(await this.#reload())) {
      if (kept) this.#state.set({ unanswered: kept });
      return;
    }
    const { conversation: of, readOnly } = this.#state.get();
    if (of.thread !== thread || readOnly) return;
    if (of.failure) return this.#state.set({ unanswered: kept });
    const last = of.items.findLast((item) => item.role === 'assistant');
    if (!kept) {
      // Another tab's message has a known name, so this tab may send it again.
      const asked = last?.state === 'failed' && of.items.findLast((item) => item.role === 'user');
      if (asked && last.asked) this.#state.set({ unanswered: { id: last.asked, text: asked.text } });
      return;
    }
    const found = fate(of, kept);
    if (found === 'answered') return this.#unanswered.forget(thread);
    if (found !== 'failed' && isRecent(kept)) return this.send(kept.text, kept.id, found === 'open');
    if (found === 'absent') this.#show(ended(said(of, kept)));
    this.#state.set({ unanswered: kept });
  }

  /** The thread as it is kept; a turn in progress is followed to its end. If reading fails, the page stays, and false is returned. */
  async #reload({ quietly = false } = {}) {
    const reading = this.#listen();
    const { thread, items } = this.#state.get().conversation;
    const mine = () => this.#reading === reading;
    let following = false;
    this.#state.set({ loading: !quietly });
    try {
      let read = conversation(thread);
      if (this.#state.get().readOnly) read = ofThread(thread, await this.#api.messages(thread));
      else {
        for await (const events of batches(this.#api.history({ thread, run: reading.run, signal: reading.signal }))) {
          if (!mine()) return false;
          let followed = following;
          for (const event of events) {
            read = applied(read, event);
            followed ||= read.followed !== null;
          }
          if (!followed) continue;
          if (!following) this.#announce('The answer is being written.');
          following = true;
          this.#state.set({ loading: false, answering: true });
          this.#show(read);
        }
      }
      if (!mine()) return false;
      if (read.failure && !following) throw new Error(failureOf(read.failure));
      // Not kept yet.
      this.#show(read.items.length === 0 ? { ...read, items } : read);
      if (following) this.#finished(null, read.failure);
      else if (!quietly) this.#announce('The conversation is open.');
      return true;
    } catch (error) {
      if (mine() && !quietly && !(error instanceof Refused && error.status === 404)) this.#problem(error, AGAIN(this));
      return false;
    } finally {
      this.#heardOut(reading);
    }
  }

  #problem(error, action = null) {
    if (error instanceof SignInNeeded) {
      return this.#say({ text: error.message, kind: 'problem', action: { label: 'Sign in again', act: this.#signIn } });
    }
    const broke = error instanceof BrokenOff;
    const known = [Refused, Unreachable, Error].includes(error.constructor);
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

const questions = (of) => of.items.filter((item) => item.role === 'user').length;

const none = () => ({ items: [], next: null, loading: false, isLong: false });

export const BEGINNING = {
  threads: none(),
  conversation: conversation(null),
  readOnly: null,
  loading: false,
  answering: false,
  stopping: false,
  notice: null,
  unanswered: null,
  announcement: '',
};
