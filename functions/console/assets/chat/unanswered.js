// Unanswered messages: after a reload the same message goes out under the same name, so nothing happens twice.

const KEPT = 'switchboard.unanswered';
/** Milliseconds in which a message is sent again automatically; later the person is asked. */
const BY_ITSELF = 10 * 60_000;

export class Unanswered {
  #storage;

  constructor(storage) {
    this.#storage = storage;
  }

  /** `{id, text, asked, at}` of a thread, or null; `asked` counts the questions up to this one. */
  of(thread) {
    return this.#all()[thread] ?? null;
  }

  keep(thread, { id, text }, asked, now = Date.now()) {
    this.#write({ ...this.#all(), [thread]: { id, text, asked, at: now } });
  }

  forget(thread) {
    const { [thread]: _, ...others } = this.#all();
    this.#write(others);
  }

  #all() {
    try {
      return JSON.parse(this.#storage.getItem(KEPT)) ?? {};
    } catch {
      return {};
    }
  }

  #write(all) {
    this.#storage.setItem(KEPT, JSON.stringify(all));
  }
}

/**
 * The fate of a message, by a conversation that was just read:
 *
 * - `answered`: there is an answer, or a question back
 * - `failed`: its turn ended without one
 * - `open`: it has arrived, and nothing has come of it
 * - `absent`: it has not arrived
 *
 * People say "yes" more than once, so the number of questions counts, if all messages are shown.
 */
export function fate(of, { text, asked }) {
  const questions = of.items.filter((item) => item.role === 'user');
  const last = questions.at(-1);
  if (last?.text !== text || (questions.length < asked && !of.earlier)) return 'absent';
  const since = of.items.slice(of.items.indexOf(last) + 1);
  const answer = since.filter((item) => item.role === 'assistant').at(-1);
  if (answer?.state === 'failed') return 'failed';
  return of.waiting || (answer && answer.state !== 'cut') ? 'answered' : 'open';
}

/** Young enough to be sent again automatically. */
export function isRecent({ at }, now = Date.now()) {
  return now - at < BY_ITSELF;
}
