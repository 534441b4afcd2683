// The picture of a call as numbers: lanes, bars and marks.

const EVERY = 1_500;
/** Between reads of an ended call. */
const AFTER = 5_000;
/** For so long after its end, or after the last moment of a call that did not begin with us. */
const FOLLOWS = 600_000;
const POINTS = { agent_spoke: 'agent', caller_spoke: 'caller' };

/**
 * `{tools, points, told, span, ended, lost}` of a call: `lost` means that its end is not known. Times are milliseconds since `from`. A tool has `{tool_id, label, bars}`, a bar
 * `{id, queued, from, to, status, error, trigger}` whose `to` is null while no end is known.
 */
export function lanesOf(call, now = Date.now()) {
  const timeline = call.timeline ?? [];
  const times = [call.created_at, ...timeline.map(({ at }) => at), call.ended_at].map((at) => Date.parse(at)).filter(Number.isFinite);
  const from = times.length ? Math.min(...times) : now;
  const ended = isOver(call);
  const lost = !ended && isLost(call, now);
  const last = timeline.findLast(({ event }) => event === 'call_ended')?.at ?? call.ended_at;
  // The cost follows seconds after the call.
  const spoken = timeline.filter(({ event }) => event !== 'cost_reported').map(({ at }) => Date.parse(at));
  const to = ended || lost ? Math.max(Date.parse(last) || from, ...spoken) : Math.max(now, ...times);
  const since = (at) => Date.parse(at) - from;
  const bars = new Map();
  const points = [];
  const told = [];
  let connected = null;
  for (const moment of timeline) {
    const { event, at } = moment;
    if (event === 'call_connected') connected = since(at);
    if (POINTS[event]) points.push({ who: POINTS[event], at: since(at) });
    if (['context_injected', 'result_injected', 'context_failed', 'result_failed', 'variable_set'].includes(event)) {
      told.push({ at: since(at), failed: event.endsWith('_failed') });
    }
    if (!moment.execution_id) continue;
    const { execution_id: id, tool_id, label, trigger } = moment;
    const bar = bars.get(id) ?? { id, tool_id, label, trigger, queued: null, from: null, to: null, status: null, error: null };
    bars.set(id, bar);
    if (event === 'tool_queued') bar.queued = since(at);
    if (event === 'tool_started') bar.from = since(at);
    if (event === 'tool_finished') {
      bar.to = since(at);
      bar.from ??= bar.to - moment.duration_ms;
      Object.assign(bar, { status: moment.status, error: moment.error });
    }
  }
  const tools = [];
  for (const bar of bars.values()) {
    const lane = tools.find(({ tool_id }) => tool_id === bar.tool_id);
    if (lane) lane.bars.push(bar);
    else tools.push({ tool_id: bar.tool_id, label: bar.label, bars: [bar] });
  }
  return { from, span: Math.max(to - from, 1), ended, lost, connected, points, told, tools };
}

export function isOver(call) {
  return Boolean(call.ended_at) || ['ended', 'not-found', 'deletion-failed'].includes(call.status);
}

/** A call that came in at VAPI, not through us: nothing tells its end. */
function isLost({ created_at: began, timeline }, now) {
  return !began && !(timeline ?? []).some(({ at }) => now - Date.parse(at) < FOLLOWS);
}

/** Milliseconds until the call is read again, null for never: cost, results and the check of claims follow its end. */
export function readAgain(call, now = Date.now()) {
  if (!isOver(call)) return isLost(call, now) ? null : EVERY;
  const open = lanesOf(call).tools.some(({ bars }) => bars.some(({ to }) => to === null));
  return !isFollowed(call, now) || (call.cost !== null && call.claim_check?.status !== 'checking' && !open) ? null : AFTER;
}

/** Whether more may become known of an ended call. */
export function isFollowed({ ended_at: ended }, now = Date.now()) {
  return now - Date.parse(ended) < FOLLOWS;
}

/** In the order of their ends, so that a later failure comes last. */
export function failedIn(lanes) {
  const bars = lanes.tools.flatMap(({ bars }) => bars);
  return bars.filter(({ status }) => ['failed', 'partial', 'unknown', 'limited'].includes(status)).sort((one, other) => one.to - other.to);
}

/** Pairs of times. */
export function busyIn({ span, connected, points, told, tools }) {
  const marks = [0, span, connected ?? 0, ...points.map(({ at }) => at), ...told.map(({ at }) => at)].map((at) => [at, at]);
  return [...marks, ...tools.flatMap(({ bars }) => bars.map(({ queued, from, to }) => [queued ?? from, to ?? from ?? queued]))];
}
