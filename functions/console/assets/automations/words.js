// A definition in words.

const OPERATORS = {
  '==': 'is', '!=': 'is not', '<': 'is less than', '>': 'is more than', '<=': 'is at most', '>=': 'is at least', contains: 'contains', not_contains: 'does not contain',
  contains_any: 'contains any of', starts_with: 'begins with', ends_with: 'ends with', exists: 'is there', not_exists: 'is not there',
  matches: 'matches', in: 'is one of', between: 'is between', is_empty: 'is empty', any: 'has an item where', all: 'has only items where', none: 'has no item where',
};

/** `When Slack says: message`, `Every day at 09:00`. */
export function beginningOf({ trigger_type: type, trigger_config: config }) {
  const { service, event_type: event, source_tool: source, polling_interval_minutes: minutes = 15, run_at: at, interval, time_of_day: time, day_of_week: day, timezone } = config ?? {};
  const zone = timezone ? ` (${timezone})` : '';
  if (type === 'webhook') return `When ${service} says: ${event}`;
  if (type === 'polling') return `When ${source} of ${service} finds something new, asked every ${minutes} minutes`;
  if (type === 'schedule_once') return `Once, at ${at}${zone}`;
  if (type === 'schedule_recurring') return `${{ daily: 'Every day', weekly: `Every week on ${day}` }[interval] ?? `Every ${interval}`}${time ? ` at ${time}` : ''}${zone}`;
  return 'By hand';
}

/** Lines `{depth, text}`; the groups say whether all or any of their lines must hold. */
export function conditionLines(condition, depth = 0) {
  if (!condition || typeof condition !== 'object') return [];
  const clauses = condition.clauses ?? condition.conditions;
  if (Array.isArray(clauses)) {
    const inner = clauses.flatMap((clause) => conditionLines(clause, depth + (clauses.length > 1 ? 1 : 0)));
    return clauses.length > 1 ? [{ depth, text: condition.operator === 'OR' ? 'any of these' : 'all of these' }, ...inner] : inner;
  }
  const { path, field, op, value, case_insensitive: anyCase } = condition;
  if (['any', 'all', 'none'].includes(op)) return [{ depth, text: `${path} ${OPERATORS[op]}` }, ...conditionLines(value, depth + 1)];
  if (op) return [{ depth, text: `${path ?? field} ${OPERATORS[op] ?? op}${value === undefined ? '' : ` ${said(value)}`}${anyCase ? ', in any case of letters' : ''}` }];
  const [[name, of] = [], ...more] = Object.entries(condition).filter(([name]) => !['path', 'field', 'case_insensitive'].includes(name));
  return name && more.length === 0 ? [{ depth, text: `${path ?? field} ${OPERATORS[name] ?? name} ${said(of)}` }] : [{ depth, text: JSON.stringify(condition) }];
}

function said(value) {
  return typeof value === 'string' ? `“${value}”` : JSON.stringify(value);
}

/** Cut at its templates: `{text}` and `{name}`, in order. */
export function templated(text) {
  return String(text).split(/(\{\{[^{}]*\}\})/).filter(Boolean).map((part) => (/^\{\{.*\}\}$/s.test(part) ? { name: part.slice(2, -2).trim() } : { text: part }));
}

/**
 * The steps of a definition: `{pointer, id, tool, parameters, condition, output, approval, stops, loop, pause, lists}`. `lists` are the
 * steps within a loop or a choice, each `{title, when, steps}`; a deeper list than a definition can have is left out.
 */
export function actionsOf({ actions = [] }, pointer = '/actions', depth = 0) {
  if (!Array.isArray(actions) || depth > 5) return [];
  return actions.map((action, place) => {
    const at = `${pointer}/${place}`;
    const inner = (steps, below) => actionsOf({ actions: steps ?? [] }, `${at}/${below}`, depth + 1);
    const branches = Array.isArray(action.choose) ? action.choose.map((branch, number) => ({ title: number === 0 ? 'If' : 'Else, if', when: branch.when ?? null, steps: inner(branch.actions, `choose/${number}/actions`) })) : [];
    return {
      pointer: at,
      id: action.id ?? action.action_id ?? `action ${place + 1}`,
      tool: action.tool ?? null,
      parameters: action.parameters ?? action.params ?? {},
      condition: action.condition ?? null,
      output: action.output_as ?? null,
      approval: action.approval ?? null,
      stops: action.on_error === 'stop',
      loop: action.for_each === undefined ? null : { list: action.for_each, item: action.as ?? 'item', key: action.key ?? null, most: action.max_items ?? 100, atOnce: action.at_once ?? 1 },
      pause: action.wait ?? null,
      lists: [
        ...(action.for_each === undefined ? [] : [{ title: 'For each item', when: null, steps: inner(action.actions, 'actions') }]),
        ...branches,
        ...(action.catch ? [{ title: 'If it fails', when: null, steps: inner(action.catch, 'catch') }] : []),
        ...(action.otherwise ? [{ title: 'Otherwise', when: null, steps: inner(action.otherwise, 'otherwise') }] : []),
      ],
    };
  });
}

/** The diagnostics at or below a place, except those of the steps within it. */
export function diagnosticsAt(diagnostics, pointer, lists = []) {
  const below = (at, place) => at === place || at.startsWith(`${place}/`);
  const inner = lists.flatMap(({ steps }) => steps.map((step) => step.pointer));
  return diagnostics.filter(({ pointer: at }) => below(at, pointer) && !inner.some((place) => below(at, place)));
}

/** `activate`, `resume`, `rollback`, or null for the active version. */
export function stepTo(automation, version) {
  const { active_version: active, status } = automation;
  if (active === version) return status === 'paused' ? 'resume' : null;
  return active !== null && version < active ? 'rollback' : 'activate';
}

/** The draft's name of an automation, or of a new one of a template. */
export function draftOf(slug, id) {
  return `${slug} automations/${id}`;
}
