// A run's facts in words.

const TRIGGERS = {
  manual: 'By hand',
  webhook: 'An event',
  polling: 'An event, asked for',
  schedule_once: 'A schedule',
  schedule_recurring: 'A schedule',
  replay: 'A replayed event',
  action: 'Another run',
};

export function triggerOf({ trigger_type: type }) {
  return TRIGGERS[type] ?? type;
}

export function isOver({ status }) {
  return !['queued', 'running', 'waiting_for_approval'].includes(status);
}

/** Null if it waits for nothing. */
export function waitOf({ waits_for: waits }) {
  if (!waits) return null;
  return { approval: 'Waits for a decision', run: 'Waits for another run', time: 'Pauses', model: 'Waits for the model, which is down or busy', service: 'Waits for a service that is down', event: `Waits for the event ${waits.event}` }[waits.what] ?? `Waits for ${waits.what}`;
}

/**
 * The steps of a run: its actions, or the model's answers with their calls below them. `{id, title, note, status, level, from, took,
 * given, gave, error, condition}`; times are milliseconds since `began`.
 */
export function stepsOf(run) {
  const began = Date.parse(run.started_at ?? run.created_at);
  const since = (at) => Date.parse(at) - began;
  const actions = (run.actions ?? []).map((action) => ({
    id: `${action.place ?? action.action_id}${action.kind === 'for_each_end' ? '-end' : ''}`,
    title: { for_each: 'Loop', for_each_end: 'End of the loop', choose: 'Choice', wait: 'Pause' }[action.kind] ?? action.tool,
    note: [action.place ?? action.action_id, action.note, action.kept_from && 'kept from an earlier run', action.attempts > 1 ? `${action.attempts} tries` : ''].filter(Boolean).join(', '),
    status: action.status,
    level: Math.min((action.place ?? '').split('].').length - 1, 3),
    from: since(action.started_at),
    took: action.attempts === 0 ? null : action.duration_ms,
    given: action.arguments,
    gave: action.output,
    error: action.error,
    condition: action.condition_result,
  }));
  const answers = (run.steps ?? []).flatMap((step) => {
    const id = `step-${step.step}`;
    const answer = {
      id,
      title: step.phase === 'final' ? 'Final answer' : `Answer ${step.step}`,
      note: step.model,
      status: step.cut ? 'partial' : 'succeeded',
      level: 0,
      from: since(step.started_at),
      took: step.duration_ms,
      gave: step.answer,
      error: step.cut ? 'It ended because there was no room for more.' : null,
      tokens: step,
    };
    let at = answer.from + step.duration_ms;
    const calls = step.calls.map((call, place) => {
      const from = at;
      at += call.duration_ms;
      const error = ['succeeded', 'repeated'].includes(call.outcome) ? null : String(call.result ?? '');
      return { id: `${id}-${place + 1}`, title: call.name || 'A call that could not be read', note: '', status: call.outcome, level: 1, from, took: call.duration_ms, given: call.arguments, gave: call.result, error };
    });
    return [answer, ...calls];
  });
  return [...answers, ...actions];
}
