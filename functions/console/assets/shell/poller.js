// Reads again and again what is looked at: never twice at once, and not while the page is hidden.

/** After a failure the next try waits this much longer, up to a minute. */
const SLOWER = 2;
const SLOWEST = 60_000;
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
      this.#failures = 0;
      this.#told({ data });
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
