// A conversation before and after each event of a run. All functions are pure.

/**
 * - `items`, in their order:
 *   - `{kind: 'message', id, role: 'user' | 'assistant', text, state}`; `state` is `sending` (not yet known to have arrived), `growing`,
 *     `cut` (the run ended in its middle), `incomplete`, `failed` (the answer to a turn that failed) or `whole`
 *   - `{kind: 'call', id, name, arguments, state, outcome?, result?}`; `arguments` and `result` are text, `state` is `calling`,
 *     `running` or `over`
 *   - `{kind: 'widget', id, widget}`
 *   - `{kind: 'receipt', id, receipt}`: the actions of a turn, from the record and not from the answer's words
 *   - `{kind: 'note', id, text}`: a remark of the service's
 * - `earlier`: the cursor of older messages, if any are not shown
 * - `run`: `{id, step}` while an answer is being made
 * - `followed`: `{id, text}` of the message whose turn is in progress, if another tab, or this one before a reload, began it
 * - `waiting`: `{id, message, tool, label, shows, arguments, expires}` if something waits for the person's consent
 * - `failure`: `{message, code}` of the last run
 */
export function conversation(thread) {
  return { thread, items: [], earlier: null, run: null, followed: null, waiting: null, failure: null };
}

/** `again`: the message takes the place of its last try. */
export function said(before, { id, text }, { again = false } = {}) {
  const last = before.items.findLastIndex((item) => item.role === 'user');
  const retried = again && before.items[last]?.text === text;
  const others = (retried ? before.items.slice(0, last) : before.items).filter((item) => item.id !== id);
  const items = [...others, { kind: 'message', id, role: 'user', text, state: 'sending' }];
  return { ...before, items, waiting: null, failure: null };
}

/** For a message that was not taken. */
export function unsaid(before, id) {
  return { ...before, items: before.items.filter((item) => item.id !== id) };
}

/** `page`: older messages of `GET /agent/threads/{id}`. */
export function withEarlier(before, page) {
  const older = ofPage(page.items);
  const known = new Set(before.items.map((item) => item.id));
  return { ...before, items: [...older.filter((item) => !known.has(item.id)), ...before.items], earlier: page.next_cursor ?? null };
}

/** Of `GET /agent/threads/{id}`, for readers. */
export function ofThread(thread, page) {
  return withEarlier(conversation(thread), page);
}

/** However the run ended. */
export function ended(before) {
  const close = (item) => {
    if (item.state === 'growing') return { ...item, state: 'cut' };
    if (item.state === 'sending') return { ...item, state: 'whole' };
    if (item.kind === 'call' && item.state !== 'over') return { ...item, state: 'over', outcome: item.outcome ?? 'unknown' };
    return item;
  };
  return { ...before, run: null, followed: null, items: before.items.map(close) };
}

/** Events without meaning for a reader change nothing. */
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
    if (name === 'tool_outcome') return changed(before, value?.toolCallId, (item) => ({ ...item, outcome: value.outcome }));
    if (name === 'receipt') return withReceipt(before, `${before.run?.id}-receipt`, value);
    if (name === 'running') return { ...before, followed: { id: value?.message_id ?? null, text: value?.message ?? '' } };
    return before;
  },

  MESSAGES_SNAPSHOT: (before, event) => ({ ...before, ...ofMessages(event.messages ?? []) }),

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

/** An empty receipt is not shown. */
function withReceipt(before, id, receipt) {
  const says = receipt?.no_action === true || receipt?.entries?.length > 0;
  return says ? withItem(before, { kind: 'receipt', id, receipt }) : before;
}

/** Replaces the item with its id, or comes last. */
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

/** `content` is JSON as a rule. */
function answered(item, content, outcome = 'succeeded') {
  const result = typeof content === 'string' ? content : JSON.stringify(content ?? null);
  return { ...item, state: 'over', outcome, result };
}

/** With the cursor of older messages. */
function ofMessages(messages) {
  let history = conversation(null);
  for (const [place, told] of messages.entries()) {
    const id = told.id ?? `message-${place}`;
    if (told.role === 'user' || told.role === 'assistant') {
      const text = textOf(told.content);
      if (text !== '') history = withItem(history, { ...message(id, told.role, text), ...standing(told.metadata) });
      for (const made of told.toolCalls ?? []) {
        history = withItem(history, call(made.id, made.function?.name ?? 'a tool', made.function?.arguments ?? '', 'over'));
      }
      history = withReceipt(history, `${id}-receipt`, told.metadata?.receipt);
    } else if (told.role === 'tool') {
      history = changed(history, told.toolCallId, (item) =>
        told.error ? answered(item, told.error, 'failed') : answered(item, told.content),
      );
    } else if (told.role === 'system') {
      const cursor = told.metadata?.next_cursor;
      // A button takes its place.
      if (cursor) history = { ...history, earlier: cursor };
      else history = withItem(history, { kind: 'note', id, text: textOf(told.content) });
    } else if (told.role === 'activity' && told.activityType === 'widget') {
      history = withItem(history, widget(id, told.content));
    }
  }
  return { items: history.items, earlier: history.earlier };
}

/** `page`: newest first, of `GET /agent/threads/{id}`. */
function ofPage(messages) {
  let history = conversation(null);
  for (const told of [...messages].reverse()) {
    const id = `number-${told.number}`;
    for (const [place, made] of (told.tools ?? []).entries()) {
      history = withItem(history, { ...call(`${id}-call-${place}`, made.tool, null, 'over'), outcome: made.outcome });
    }
    if (told.widget) history = withItem(history, widget(`${id}-widget`, told.widget));
    const known = told.role === 'user' || told.role === 'assistant';
    if (known && told.content !== '') history = withItem(history, { ...message(id, told.role, told.content), ...standing(told.metadata) });
    history = withReceipt(history, `${id}-receipt`, told.metadata?.receipt);
  }
  return history.items;
}

/** `asked`: the message that a failed turn was to answer. */
function standing(metadata) {
  if (metadata?.failed) return { state: 'failed', asked: metadata.message_id ?? null };
  return { state: metadata?.incomplete ? 'incomplete' : 'whole' };
}

/** Or that of its parts. */
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
    label: asked.metadata?.label ?? null,
    shows: asked.metadata?.shows ?? null,
    arguments: asked.metadata?.arguments ?? {},
    expires: asked.expiresAt ?? null,
  };
}

/** Without markup, for screen readers. */
export function lastAnswer(of) {
  const said = of.items.filter((item) => item.kind === 'message').at(-1);
  return said?.role === 'assistant' ? said.text.replace(/[*`#|]/g, '') : '';
}
