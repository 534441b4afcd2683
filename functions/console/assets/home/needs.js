// Decisions and failures that need a person now, most urgent first; and calls by hour.

import { recipientsIn, wordsOf } from '../approvals/asked.js';
import { callerOf, unprovenOf } from '../calls/words.js';
import { budgetsOf } from '../usage/budgets.js';

const DAY = 86_400_000;
const HOUR = 3_600_000;
/** A budget used beyond this share is near its end. */
const NEAR = 0.8;

/** `{id, status, word, title, why, at, until, page, to, query, act}` of each; without `word` that of the status. `runs` failed; `failures`: `{call, execution, tool}`, the call maybe unknown. */
export function needsOf({ approvals, paused, runs, calls, failures, usage, nameOf }, now = Date.now()) {
  const recent = (at) => now - Date.parse(at) < DAY;
  const asked = approvals.toSorted((one, other) => Date.parse(one.expires_at) - Date.parse(other.expires_at)).map((item) => ({
    id: item.id, status: 'pending', word: 'Approval', title: [wordsOf(item.tool), recipientsIn(item)].filter(Boolean).join(' to '),
    why: `${nameOf(item.automation_id)} asks${item.reason ? `: “${item.reason}”` : '.'}`, until: item.expires_at, page: 'approvals', to: item.id, act: 'Decide',
  }));
  const failed = grouped(failures.filter(({ execution }) => recent(execution.started_at)), ({ execution: { call_id: call, tool_id: tool, status, error } }) => [call, tool, status, error]).map(([{ call, execution, tool }, count]) => ({
    id: execution.id, status: execution.status, word: execution.status === 'failed' ? 'Tool failed' : null, title: `${tool}${count > 1 ? `, in ${count} calls` : call ? `, in the call of ${callerOf(call)}` : ''}`,
    why: execution.error ?? '', at: execution.started_at, act: 'See request',
    ...(execution.call_id ? { page: 'calls', to: execution.call_id, query: { execution: execution.id } } : { page: 'executions', to: execution.id, query: { tool: execution.tool_id } }),
  }));
  const unproven = calls.filter((call) => unprovenOf(call) && recent(call.ended_at ?? call.created_at)).map((call) => ({
    id: `claims-${call.id}`, status: 'unproven', word: 'Unproven', title: `In the call of ${callerOf(call)}`, why: unprovenOf(call),
    at: call.ended_at ?? call.created_at, page: 'calls', to: call.id, act: 'See call',
  }));
  const open = runs.filter((run) => recent(run.created_at) && !run.retried_by);
  const broken = grouped(open, ({ id, automation_id: automation, status, error }) => [id, automation, status, error]).map(([run, count]) => ({
    id: run.id, status: run.status, word: 'Run', title: `${nameOf(run.automation_id)}${count > 1 ? `, in ${count} runs` : ''}`, why: run.error ?? reasonOf(run),
    at: run.finished_at ?? run.created_at, page: 'runs', to: run.id, act: 'See run',
  }));
  const stopped = paused.map((automation) => ({
    id: automation.id, status: 'paused', word: 'Paused', title: automation.name, why: automation.pause_reason ?? 'Somebody paused it.', at: automation.updated_at,
    ...(automation.paused_by_run ? { page: 'runs', to: automation.paused_by_run, act: 'See run' } : { page: 'automations', to: automation.id, act: 'See automation' }),
  }));
  const near = budgetsOf(usage).filter(({ share }) => share >= NEAR).map((budget) => ({
    id: budget.id, status: 'limited', word: 'Near limit', title: `${budget.word}: ${budget.used} of ${budget.limit}`, why: budget.beyond, until: budget.until, page: 'usage', to: null, act: 'See usage',
  }));
  return [...asked, ...unproven, ...failed, ...broken, ...stopped, ...near];
}

function reasonOf({ status, actions_failed: failed }) {
  return status.endsWith('_limit') ? `It ended at its ${status.replace('_', ' ')}.` : `${failed} of its actions failed.`;
}

/** One need per `key`: the newest failure, and the number of calls or runs. `told` gives `[id, ...key]`. */
function grouped(failures, told) {
  const groups = new Map();
  for (const failure of failures) {
    const [id, ...parts] = told(failure);
    const key = parts.join(' ');
    const [newest, ids] = groups.get(key) ?? [failure, new Set()];
    groups.set(key, [newest, ids.add(id)]);
  }
  return [...groups.values()].map(([newest, ids]) => [newest, ids.size]);
}

/** The last 24 hours, oldest first: `{from, count, failed}`; `since` is the beginning of the known hours. */
export function callsByHour(calls, { whole, now = Date.now() }) {
  const last = Math.floor(now / HOUR) * HOUR;
  const hours = Array.from({ length: 24 }, (_, place) => ({ from: last - (23 - place) * HOUR, count: 0, failed: 0 }));
  for (const { created_at: at, failed_tools: failed } of calls) {
    const hour = hours.find(({ from }) => Date.parse(at) >= from && Date.parse(at) < from + HOUR);
    if (!hour) continue;
    hour.count += 1;
    if (failed > 0) hour.failed += 1;
  }
  const oldest = Math.min(...calls.map(({ created_at: at }) => Date.parse(at)).filter(Number.isFinite));
  return { hours, since: !whole && oldest > hours[0].from ? oldest : null };
}
