// Both versions of AG-UI's client in use: CopilotKit's pinned version and the current one.
import { HttpAgent as Pinned } from '@ag-ui/client-pinned';
import { HttpAgent as Current } from '@ag-ui/client';

export const CLIENTS = { pinned: Pinned, current: Current };

/** Runs an agent and reports its events (without repetitions), texts and end. */
export async function run(agent, parameters = {}, onEvent = () => {}) {
  const seen = { events: [], deltas: 0, states: 0, activities: [], results: [] };
  const begun = performance.now();
  const times = [];
  const subscriber = {
    onEvent({ event }) {
      if (seen.events.at(-1) !== event.type) seen.events.push(event.type);
      if (event.type === 'TEXT_MESSAGE_CONTENT') {
        seen.deltas += 1;
        times.push(performance.now() - begun);
      }
      if (event.type === 'TOOL_CALL_RESULT') seen.results.push(event.content);
      if (event.type === 'ACTIVITY_SNAPSHOT') seen.activities.push([event.activityType, event.content?.type]);
      if (event.type === 'RUN_FINISHED') seen.outcome = event.outcome;
      if (event.type === 'RUN_ERROR') seen.failed = { message: event.message, code: event.code };
      onEvent(event, seen);
    },
    onMessagesChanged() {
      seen.states += 1;
    },
  };
  try {
    await agent.runAgent(parameters, subscriber);
  } catch (error) {
    seen.error = String(error?.message ?? error);
    seen.status = error?.status;
  }
  // Milliseconds from the first word to the last: 0 if the stream was held back.
  seen.spread = times.length > 1 ? Math.round(times.at(-1) - times[0]) : 0;
  seen.took = Math.round(performance.now() - begun);
  seen.messages = agent.messages.map(briefly);
  return seen;
}

/** A message without its random ids. */
export function briefly(message) {
  const brief = { role: message.role };
  if (message.content !== undefined) brief.content = message.content;
  if (message.toolCalls) brief.calls = message.toolCalls.map((call) => call.function.name);
  return brief;
}
