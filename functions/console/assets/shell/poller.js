// Reads again and again what is looked at: never twice at once, and not while the page is hidden.

/** After a failure the next try waits this much longer, up to a minute. */
const SLOWER = 2;
const SLOWEST = 60_000;
/** Unchanged data are told again after this long, for ages in words grow. */
const STILL = 20_000;
/** This long where the data are read only once. */
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
   * `read` gives the data; `told` takes `{data}` or `{error}`; `every` gives milliseconds for the data, or null once they are final.
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

  /** Reads at once; concurrent callers share the same answer. */
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
    // Its time comes when the page is looked at again.
    this.#waits = true;
  }

  #waits = false;

  #shown() {
    if (this.#page.visibilityState === 'hidden' || !this.#waits) return;
    this.#waits = false;
    this.now();
  }
}
