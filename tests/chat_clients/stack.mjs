// The running system as the clients find it, and what its model is to say.
// Environment: STREAM, TOKEN, LLM, TWILIO, OTHER_SLUG: an organization that is not the token's; REMINDER, SALES: the names of a tool
// that acts and asks first, and of one whose result has a widget.
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

/** What the model says next, request by request. */
export const script = (...turns) => json('PUT', `${LLM}/script`, turns);

/** A plan, as the planner reads it. */
export const plan = (tool, args = {}) => ({ content: JSON.stringify({ tool, reason: 'as asked', arguments: args }) });
export const none = plan('none');

/** An answer whose words come one by one. */
export const says = (content, pause_ms = 0) => ({ content, pause_ms });

/** Text messages that went out so far. */
export const sent = async () => (await json('GET', `${TWILIO}/messages`)).length;

/** Stops what is being answered in a thread, as CopilotKit does. */
export const stop = (thread) => json('POST', `${STREAM}/copilotkit/agent/default/stop/${thread}`, {}, headers);
