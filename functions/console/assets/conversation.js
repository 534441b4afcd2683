// A conversation as it is shown, and what each event of a run makes of it. No function here changes what it is given.

/**
 * - `items`, in their order:
 *   - `{kind: 'message', id, role: 'user' | 'assistant', text, state}`; `state` is `sending` (not yet known to have arrived), `growing`,
 *     `cut` (the run ended in its middle), `void` (replaced by a later message) or `whole`
 *   - `{kind: 'call', id, name, arguments, state, outcome?, result?}`; `arguments` and `result` are text, `state` is `calling`,
 *     `running` or `over`
 *   - `{kind: 'widget', id, widget}`
 *   - `{kind: 'note', id, text}`: what neither of them said
 * - `run`: `{id, step}` while an answer is being made
 * - `waiting`: `{id, message, tool, arguments, expires}` if something waits for the person's consent
 * - `failure`: `{message, code}` of the last run
 */
export function conversation(thread) {
  return { thread, items: [], run: null, waiting: null, failure: null };
}

/** The conversation with a message that the person has just sent. */
export function said(before, { id, text }) {
  const others = before.items.filter((item) => item.id !== id);
  const items = [...others, { kind: 'message', id, role: 'user', text, state: 'sending' }];
  return { ...before, items, waiting: null, failure: null };
}

/** The conversation without a message that was not taken. */
export function unsaid(before, id) {
  return { ...before, items: before.items.filter((item) => item.id !== id) };
}

/** The conversation once nothing more comes of a run, however it ended. */
export function ended(before) {
  const close = (item) => {
    if (item.state === 'growing') return { ...item, state: 'cut' };
    if (item.state === 'sending') return { ...item, state: 'whole' };
    if (item.kind === 'call' && item.state !== 'over') return { ...item, state: 'over', outcome: item.outcome ?? 'unknown' };
    return item;
  };
  return { ...before, run: null, items: before.items.map(close) };
}

/** What an event makes of a conversation. Events that say nothing to a reader leave it as it is. */
export function applied(before, event) {
  const apply = EVENTS[event.type];
  return apply ? apply(before, event) : before;
}

const EVENTS = {
  RUN_STARTED: (before, event) => ({
    ...before,
    run: { id: event.runId, step: null },
    failure: null,
    items: before.items.map((item) => (item.state === 'sending' ? { ...item, state: 'whole' } : item)),
  }),
  STEP_STARTED: (before, event) => (before.run ? { ...before, run: { ...before.run, step: event.stepName } } : before),
  STEP_FINISHED: (before) => (before.run ? { ...before, run: { ...before.run, step: null } } : before),

  TEXT_MESSAGE_START: (before, event) => withItem(before, message(event.messageId, event.role)),
  TEXT_MESSAGE_CONTENT: (before, event) => {
    const known = before.items.some((item) => item.id === event.messageId);
    const begun = known ? before : withItem(before, message(event.messageId));
    return changed(begun, event.messageId, (item) => ({ ...item, text: item.text + (event.delta ?? '') }));
  },
  TEXT_MESSAGE_END: (before, event) =>
    changed(before, event.messageId, (item) => (item.state === 'growing' ? { ...item, state: 'whole' } : item)),

  TOOL_CALL_START: (before, event) => withItem(before, call(event.toolCallId, event.toolCallName)),
  TOOL_CALL_ARGS: (before, event) =>
    changed(before, event.toolCallId, (item) => ({ ...item, arguments: item.arguments + (event.delta ?? '') })),
  TOOL_CALL_END: (before, event) =>
    changed(before, event.toolCallId, (item) => (item.state === 'calling' ? { ...item, state: 'running' } : item)),
  TOOL_CALL_RESULT: (before, event) => changed(before, event.toolCallId, (item) => answered(item, event.content)),

  ACTIVITY_SNAPSHOT: (before, event) =>
    event.activityType === 'widget' ? withItem(before, widget(event.messageId, event.content)) : before,
  CUSTOM: (before, { name, value }) => {
    if (name === 'message_corrected') return changed(before, value?.messageId, (item) => ({ ...item, state: 'void' }));
    if (name === 'tool_outcome') return changed(before, value?.toolCallId, (item) => ({ ...item, outcome: value.outcome }));
    return before;
  },

  MESSAGES_SNAPSHOT: (before, event) => ({ ...before, items: ofMessages(event.messages ?? []) }),

  RUN_FINISHED: (before, event) => {
    const whole = before.items.map((item) => (item.state === 'growing' ? { ...item, state: 'whole' } : item));
    const asked = event.outcome?.type === 'interrupt' ? event.outcome.interrupts?.[0] : null;
    return { ...ended({ ...before, items: whole }), waiting: asked ? question(asked) : null };
  },
  RUN_ERROR: (before, event) => ({
    ...ended(before),
    failure: { message: event.message ?? 'The answer could not be given.', code: event.code ?? null },
  }),
};

const message = (id, role = 'assistant', text = '', state = 'growing') => ({ kind: 'message', id, role, text, state });
const call = (id, name, given = '', state = 'calling') => ({ kind: 'call', id, name, arguments: given, state });
const widget = (id, drawn) => ({ kind: 'widget', id, widget: drawn });

/** At the end, or in the place of the item that has its id. */
function withItem(before, item) {
  const known = before.items.some((other) => other.id === item.id);
  const items = known
    ? before.items.map((other) => (other.id === item.id ? item : other))
    : [...before.items, item];
  return { ...before, items };
}

function changed(before, id, change) {
  return { ...before, items: before.items.map((item) => (item.id === id ? change(item) : item)) };
}

/** A call with its result, a text that is JSON as a rule. It has succeeded unless something else is said. */
function answered(item, content, outcome = 'succeeded') {
  const result = typeof content === 'string' ? content : JSON.stringify(content ?? null);
  return { ...item, state: 'over', outcome, result };
}

/** The items of a history. */
function ofMessages(messages) {
  let history = conversation(null);
  for (const [place, told] of messages.entries()) {
    const id = told.id ?? `message-${place}`;
    if (told.role === 'user' || told.role === 'assistant') {
      const text = textOf(told.content);
      if (text !== '') history = withItem(history, message(id, told.role, text, 'whole'));
      for (const made of told.toolCalls ?? []) {
        history = withItem(history, call(made.id, made.function?.name ?? 'a tool', made.function?.arguments ?? '', 'over'));
      }
    } else if (told.role === 'tool') {
      history = changed(history, told.toolCallId, (item) =>
        told.error ? answered(item, told.error, 'failed') : answered(item, told.content),
      );
    } else if (told.role === 'system') {
      history = withItem(history, { kind: 'note', id, text: textOf(told.content) });
    } else if (told.role === 'activity' && told.activityType === 'widget') {
      history = withItem(history, widget(id, told.content));
    }
  }
  return history.items;
}

/** A message's text, or that of its parts. */
function textOf(content) {
  if (Array.isArray(content)) {
    return content.filter((part) => part?.type === 'text').map((part) => part.text ?? '').join('\n');
  }
  return content ?? '';
}

function question(asked) {
  return {
    id: asked.id,
    message: asked.message ?? '',
    tool: asked.metadata?.tool?.name ?? asked.metadata?.tool ?? 'a tool',
    arguments: asked.metadata?.arguments ?? {},
    expires: asked.expiresAt ?? null,
  };
}

/** The last words of the assistant, without the signs of their markup, for who listens in place of reading. */
export function lastAnswer(of) {
  const said = of.items.filter((item) => item.kind === 'message' && item.state !== 'void').at(-1);
  return said?.role === 'assistant' ? said.text.replace(/[*`#]/g, '') : '';
}
