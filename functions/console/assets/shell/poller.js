// Reads the shown data repeatedly: never twice at once, and not while the page is hidden.

/** Each failure lengthens the wait, up to a minute. */
const SLOWER = 2;
const SLOWEST = 60_000;
/** Unchanged data are told again, since ages in words grow. */
const STILL = 20_000;
/** For data read only once. */
const AT_FIRST = 1_500;

export class Poller {
  #read;
  #told;
  #every;
  #page;
  #timer = null;
  #failures = 0;
  #reading = null;
  #ended = false;
  #last = { data: null, at: 0 };
  #onShown = () => this.#shown();

  /**
   * `read` gives the data; `told` takes `{data}` or `{error}`; `every` gives milliseconds, or null for final data.
   */
  constructor({ read, told, every, page = document }) {
    this.#read = read;
    this.#told = told;
    this.#every = every;
    this.#page = page;
  }

  start() {
    this.#page.addEventListener('visibilitychange', this.#onShown);
    return this.now();
  }

  stop() {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#page.removeEventListener('visibilitychange', this.#onShown);
  }

  /** Concurrent callers share one answer. */
  now() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#reading ??= this.#once().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #once() {
    let wait = null;
    try {
      const data = await this.#read();
      if (this.#ended) return;
      const same = data === this.#last.data && this.#failures === 0 && Date.now() - this.#last.at < STILL;
      this.#failures = 0;
      if (!same) {
        this.#last = { data: typeof data === 'object' ? data : null, at: Date.now() };
        this.#told({ data });
      }
      wait = this.#every(data);
    } catch (error) {
      if (this.#ended) return;
      this.#failures += 1;
      this.#told({ error });
      wait = Math.min(SLOWEST, (this.#every(null) ?? AT_FIRST) * SLOWER ** this.#failures);
    }
    if (wait !== null) this.#timer = setTimeout(() => this.#due(), wait);
  }

  #due() {
    this.#timer = null;
    if (this.#page.visibilityState !== 'hidden') return this.now();
    // Until the page is shown again.
    this.#waits = true;
  }

  #waits = false;

  #shown() {
    if (this.#page.visibilityState === 'hidden' || !this.#waits) return;
    this.#waits = false;
    this.now();
  }
}
