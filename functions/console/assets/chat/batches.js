// The events of a stream in batches, so that a page draws them together.

/** Between two batches, in milliseconds. A click is handled meanwhile, however fast the events come. */
const PAUSE = 50;

/**
 * Lists of the events that have come since the last list; the first event is not held back. An error of the stream comes after the
 * events before it. Nothing more is read once the lists are left.
 */
export async function* batches(events, pause = PAUSE) {
  let come = [];
  let ended = false;
  let failure = null;
  let wake = () => {};
  let left = false;
  const read = async () => {
    try {
      for await (const event of events) {
        if (left) return;
        come.push(event);
        wake();
      }
    } catch (error) {
      failure = error;
    }
    ended = true;
    wake();
  };
  read();
  try {
    for (;;) {
      if (come.length > 0) {
        const batch = come;
        come = [];
        yield batch;
        if (!ended) await new Promise((go) => setTimeout(go, pause));
      } else if (ended) {
        if (failure) throw failure;
        return;
      } else {
        await new Promise((go) => {
          wake = go;
        });
      }
    }
  } finally {
    left = true;
  }
}
