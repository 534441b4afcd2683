// A tool's facts in words.

const TYPES = { sms: 'Sends SMS', api_request: 'Asks an address', pipedream_action: 'Acts at a service', transfer_call: 'Transfers the call', query: 'Searches knowledge' };

export function typeOf({ type }) {
  return TYPES[type] ?? type;
}

/** By the model, on its own when a call starts, or both. */
export function occasionOf({ execute_on_call_start: start, attach_to_agent: agent }) {
  if (start && agent) return 'When a call starts, and when the model calls it';
  return start ? 'When a call starts' : 'When the model calls it';
}

/** `{name, type, description, required}`. */
export function parametersOf({ function_schema: schema }) {
  const { properties = {}, required = [] } = schema?.parameters ?? {};
  return Object.entries(properties).map(([name, { type, format, description }]) => ({
    name,
    type: [type, format].filter(Boolean).join(', '),
    description: description ?? '',
    required: required.includes(name),
  }));
}
