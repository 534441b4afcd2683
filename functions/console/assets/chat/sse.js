// Server-sent events from a body of fetch: EventSource can neither POST nor send a token.

/** Not even the comments came that keep the connection alive. */
export class Silence extends Error {}

/**
 * The data of each event, as text. Other fields and comments are skipped; lines end in LF, CR or CRLF, and the last event
 * need not be closed by an empty line.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @param {number} quiet the longest silence, in milliseconds
 */
export async function* eventData(body, quiet = 60_000) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let data = [];
  try {
    for (let open = true; open; ) {
      const { done, value } = await within(quiet, reader.read());
      open = !done;
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const { lines, left } = split(rest, done);
      rest = left;
      for (const line of lines) {
        if (line === '') {
          if (data.length > 0) yield data.join('\n');
          data = [];
        } else if (line === 'data' || line.startsWith('data:')) {
          data.push(line.slice(5).replace(/^ /, ''));
        }
      }
    }
    if (data.length > 0) yield data.join('\n');
  } finally {
    // Stopping the reader cancels the stream.
    reader.cancel().catch(() => {});
  }
}

/** And the rest of an unfinished one. */
function split(text, ended) {
  // A CR at the very end may be half of a CRLF.
  const until = !ended && text.endsWith('\r') ? text.length - 1 : text.length;
  const lines = text.slice(0, until).split(/\r\n|\n|\r/);
  const left = lines.pop() + text.slice(until);
  return ended ? { lines: [...lines, left], left: '' } : { lines, left };
}

async function within(milliseconds, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Silence('nothing came for too long')), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
