// Beginnings of a definition. Texts that are empty are ids to fill in.

const SLACK = 'slack_post_message';

export const TEMPLATES = [
  {
    id: 'webhook',
    word: 'An event and a message',
    tools: [SLACK],
    definition: () => ({
      name: 'Urgent messages',
      description: 'Tells the team when somebody writes "urgent" in Slack.',
      trigger_type: 'webhook',
      trigger_config: { service: 'Slack', event_type: 'message', filters: { path: 'event.text', op: 'contains', value: 'urgent', case_insensitive: true } },
      actions: [{ id: 'tell', tool: SLACK, parameters: { channel: '', text: 'Urgent: {{event.text}} (from {{event.user}})' } }],
    }),
  },
  {
    id: 'schedule',
    word: 'A schedule',
    tools: ['wget', 'llm_transform', SLACK],
    definition: (timezone) => ({
      name: 'News of the morning',
      description: 'Sums up a page every morning.',
      trigger_type: 'schedule_recurring',
      trigger_config: { interval: 'daily', time_of_day: '09:00', timezone },
      actions: [
        { id: 'read', tool: 'wget', parameters: { uri: 'https://example.com/' }, output_as: 'page', on_error: 'stop' },
        { id: 'sum_up', tool: 'llm_transform', parameters: { text: '{{page}}', instruction: 'Sum it up in three sentences.' }, output_as: 'summary', on_error: 'stop' },
        { id: 'tell', tool: SLACK, parameters: { channel: '', text: 'News of {{today}}: {{summary}}' } },
      ],
    }),
  },
  {
    id: 'prompt',
    word: 'A prompt with tools',
    tools: ['wget', 'current_time'],
    definition: () => ({
      name: 'Answer a question',
      description: 'A model reads the web until it can answer.',
      trigger_type: 'manual',
      prompt: 'Answer this question, with the addresses of the pages that you have read: {{trigger_data.question}}',
      tools: ['wget', 'current_time'],
    }),
  },
];

/** The template's definition, with the fingerprints of its tools by name. */
export function begunFrom({ tools, definition }, fingerprints, timezone) {
  const known = tools.filter((tool) => fingerprints[tool]).map((tool) => [tool, fingerprints[tool]]);
  return { ...definition(timezone), fingerprints: Object.fromEntries(known) };
}
