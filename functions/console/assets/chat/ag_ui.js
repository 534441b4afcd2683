// AG-UI: the events of one run of an agent.

import { eventData } from './sse.js';

/** The stream ended, or became unreadable, before the run did. Earlier events are valid. */
export class BrokenOff extends Error {}

const LAST = ['RUN_FINISHED', 'RUN_ERROR'];

/**
 * The events of a run as they come. The last one is RUN_FINISHED or RUN_ERROR; the rest is not read.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @throws {BrokenOff} if the stream ends without either, or contains anything but events
 */
export async function* runEvents(body, quiet) {
  try {
    for await (const text of eventData(body, quiet)) {
      const event = JSON.parse(text);
      if (typeof event?.type !== 'string') throw new SyntaxError('an event without a type');
      yield event;
      if (LAST.includes(event.type)) return;
    }
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new BrokenOff('the stream broke off', { cause: error });
  }
  throw new BrokenOff('the stream ended before the run did');
}

/** For a message of the person, or their decision about a waiting call. */
export function runInput({ thread, run, message, decision }) {
  return {
    threadId: thread,
    runId: run,
    state: {},
    messages: message ? [{ id: message.id, role: 'user', content: message.text }] : [],
    tools: [],
    context: [],
    forwardedProps: {},
    ...(decision && {
      resume: [{ interruptId: decision.id, status: 'resolved', payload: { approved: decision.approved } }],
    }),
  };
}
