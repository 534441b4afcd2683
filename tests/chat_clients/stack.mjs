// The running system from the clients' environment, and the script of its model.
// Environment: STREAM, TOKEN, LLM, TWILIO; OTHER_SLUG: an organization of another user; REMINDER, SALES: the names of
// a tool that asks for consent, and of a tool whose result has a widget.
const { TOKEN, LLM, TWILIO } = process.env;

export const { STREAM, OTHER_SLUG, REMINDER, SALES } = process.env;
export const headers = { authorization: `Bearer ${TOKEN}` };

async function json(method, address, body, extra = {}) {
  const answer = await fetch(address, {
    method,
    headers: { 'content-type': 'application/json', ...extra },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${address}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

/** Sets the model's next answers, one per request. */
export const script = (...turns) => json('PUT', `${LLM}/script`, turns);

/** A plan in the planner's format. */
export const plan = (tool, args = {}) => ({ content: JSON.stringify({ tool, reason: 'as asked', arguments: args }) });
export const none = plan('none');

/** An answer that is streamed word by word. */
export const says = (content, pause_ms = 0) => ({ content, pause_ms });

/** The number of text messages sent so far. */
export const sent = async () => (await json('GET', `${TWILIO}/messages`)).length;

/** Stops a thread's running answer, as CopilotKit does. */
export const stop = (thread) => json('POST', `${STREAM}/copilotkit/agent/default/stop/${thread}`, {}, headers);
