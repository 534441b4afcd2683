// Configurations: of a saved tool, and its arguments for the model.

export const TYPES = [['sms', 'Send an SMS'], ['api_request', 'Call an API'], ['pipedream_action', 'Act at a service'], ['transfer_call', 'Transfer the call'], ['query', 'Search knowledge']];
/** Parts of a configuration whose members become arguments, with the prefix of their names. */
const GROUPS = { headers: 'header_', body: 'body_', params: '' };
const FLAGS = ['async', 'attach_to_agent', 'execute_on_call_start'];

/** As its author configures it. */
export function configOf(tool) {
  const { config_metadata: config, type, label, description } = tool;
  const flags = Object.fromEntries(FLAGS.map((flag) => [flag, tool[flag]]));
  const whole = { type, label, description, ...config, ...flags };
  return Object.fromEntries(Object.entries(whole).filter(([, value]) => value !== null && value !== undefined));
}

/** JSON Schema, for the model. */
export function argumentsOf(config) {
  const properties = {};
  const required = [];
  const ask = (name, given) => {
    const more = given?.mode === 'array_extendable' && given.aiExtension?.enabled ? given.aiExtension : null;
    if (given?.mode !== 'ai' && !more) return;
    const { required: declared, ...schema } = given.schema ?? {};
    properties[name] = more ? { type: 'array', items: { type: 'string' }, description: more.prompt } : { type: 'string', ...schema, description: given.prompt };
    if (more ? more.required : (given.required ?? declared ?? true) !== false) required.push(name);
  };
  for (const [name, given] of Object.entries(config)) {
    if (name in GROUPS) for (const [inner, value] of Object.entries(given ?? {})) ask(GROUPS[name] + inner.replaceAll(/[^A-Za-z0-9_]/g, '_'), value);
    else ask(name, given);
  }
  if (config.type === 'query' && config.query === undefined) ask('query', { mode: 'ai', prompt: 'What to look for' });
  return { type: 'object', properties, required };
}
