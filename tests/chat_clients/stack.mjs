// The running system as the clients find it, and what its model is to say.
// Environment: STREAM, API, SLUG, TOKEN, LLM, TWILIO, CRM, NUMBER_ID.
const { API, SLUG, TOKEN, LLM, TWILIO, CRM, NUMBER_ID } = process.env;

export const { STREAM } = process.env;
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

const create = (tool) => json('POST', `${API}/api/${SLUG}/tools`, tool, headers);

/** A tool that acts, and asks the person first. */
export const reminder = () =>
  create({
    type: 'sms',
    label: 'Send reminder',
    description: 'Sends a text message that reminds of the appointment.',
    from: { type: 'specific_number', phone_number_id: NUMBER_ID },
    text: { mode: 'ai', prompt: 'The reminder' },
    recipients: { mode: 'array_extendable', fixedValues: ['+14155550123'], aiExtension: { enabled: false } },
    chat: { consent: true },
  });

/** A tool whose result has a widget: the CRM answers its next request at this path so. */
export async function sales() {
  const widget = { type: 'table', title: 'Sales', columns: ['Year', 'Sum'], rows: [[2024, 7.5], [2025, 9]] };
  await json('PUT', `${CRM}/faults`, { method: 'GET', path: '/sales', status: 200, body: { widget }, times: 100 });
  return create({ type: 'api_request', label: 'Look up sales', method: 'GET', url: `${CRM}/sales` });
}

/** Stops what is being answered in a thread, as CopilotKit does. */
export const stop = (thread) => json('POST', `${STREAM}/copilotkit/agent/default/stop/${thread}`, {}, headers);
