// One execution: its arguments and result, beside the request that the tool would send now.

import { html, useState } from '../htm-preact.js';
import { Absent } from '../shell/absent.js';
import { useLater } from '../shell/effects.js';
import { faultOf } from '../shell/fault.js';
import { Icon } from '../shell/icons.js';
import { Failed, Skeleton } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact, length, relative } from '../shell/moments.js';
import { Refused } from '../shell/problems.js';
import { Result, triggerOf } from '../shell/request.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Status } from '../shell/status.js';
import { compared, differences, filled } from './compare.js';

const EVERY = 1_500;
const PAGE = 200;
const MOST_PAGES = 10;
const MARKS = {
  used: null,
  given: null,
  absent: ['changed', 'wait', 'part'],
  'newly-ignored': ['not taken any more', 'bad', 'bad'],
  ignored: ['ignored', 'done', 'skip'],
  hidden: ['hidden', 'done', 'ask'],
  own: ['from the tool', 'done', 'tool'],
};

export function ExecutionView({ id, api, slug, role, labels, query }) {
  const live = useLive(`${slug} ${id}`, () => found(api, id, query), (data) => (data === null || data.status === 'queued' ? EVERY : null));
  const execution = live.data;
  const { call: _call, tool: _tool, ...filters } = query;
  const crumb = { word: 'Executions', href: addressOf({ slug, page: 'executions', query: filters }) };
  if (!execution) return html`<${Absent} word="execution" icon="bolt" crumb=${crumb} live=${live} />`;
  const { tool_id: tool, call_id: call, run_id: run, trigger, started_at: began, duration_ms: took, error } = execution;
  const fault = faultOf(execution);
  return html`<${Main} title=${execution.label ?? labels.get(tool) ?? 'A tool'} crumb=${crumb} status=${html`<${Status} of=${execution.status} />`}
    acts=${html`<a class="btn" href=${addressOf({ slug, page: 'tools', id: tool })}>Open the tool</a>`}>
    <div class="body" data-execution-view=${id}>
      ${live.error && html`<${Failed} what="The execution" error=${live.error} at=${live.at} again=${live.again} />`}
      <section aria-label="Facts">
        ${error && html`<div class="say bad"><${Icon} name="bad" /><p><b><bdi>${error}</bdi></b> ${fault && html`<span data-fault>Cause: ${fault.word}. ${fault.next}</span>`}</p></div>`}
        ${execution.status === 'unknown' && html`<div class="say wait"><${Icon} name="ask" /><p><b>It may or may not have happened.</b> The answer was lost, so it is not sent again by itself. Check at the service.</p></div>`}
        <dl class="facts">
          <div><dt>Called by</dt><dd>${triggerOf(trigger)}</dd></div>
          <div><dt>Began</dt><dd>${exact(began)}, ${relative(began)}</dd></div>
          <div><dt>Ran</dt><dd>${length(took)}</dd></div>
          ${call && html`<div><dt>Call</dt><dd><a href=${addressOf({ slug, page: 'calls', id: call, query: { execution: id } })}>Open the call</a></dd></div>`}
          ${run && html`<div><dt>Run</dt><dd><a href=${addressOf({ slug, page: 'runs', id: run })}>Open the run</a></dd></div>`}
        </dl>
      </section>
      <${Beside} execution=${execution} api=${api} role=${role} />
      <section class="stack" aria-labelledby="h-back"><h2 id="h-back">What came back then</h2><${Result} of=${execution.result} /></section>
    </div>
  <//>`;
}

/** No route gives a single execution: the address names its call or tool. A deleted tool has no list of its own. */
async function found(api, id, { call, tool }) {
  if (call) return within(api, id, `calls/${encodeURIComponent(call)}/executions`);
  if (!tool) throw new Refused(404, 'not_found', 'The address does not say of which tool it is.');
  try {
    return await within(api, id, `tools/${encodeURIComponent(tool)}/executions`);
  } catch (error) {
    if (error.status !== 404) throw error;
    return within(api, id, 'executions', { tool_id: tool });
  }
}

async function within(api, id, path, query = {}) {
  let cursor = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { items, next_cursor: next } = await api.read(path, { ...query, limit: PAGE, cursor });
    const one = items.find((item) => item.id === id);
    if (one) return one;
    if (!next) throw new Refused(404, 'not_found', 'There is no such execution.');
    cursor = next;
  }
  throw new Error(`It is not among the newest ${PAGE * MOST_PAGES}. Open it from its list.`);
}

function Beside({ execution, api, role }) {
  const { arguments: given, ignored_arguments: before, call_id: call, tool_id } = execution;
  const [values, fill] = useState({});
  const refused = whyNot(role, 'member');
  const whole = filled(given, values);
  const now = useLive(refused ? null : `${execution.id} ${JSON.stringify(values)}`, async () => {
    // The call's numbers are part of the request; without the call the caller counts as withheld.
    const { direction, caller_phone_number: from, called_phone_number: to } = call ? await api.read(`calls/${encodeURIComponent(call)}`).catch(() => ({})) : {};
    // To a tool, the person on the line is the caller, also in a placed call.
    const [caller_phone_number, called_phone_number] = direction === 'outbound' ? [to, from] : [from, to];
    const numbers = Object.fromEntries(Object.entries({ caller_phone_number, called_phone_number }).filter(([, number]) => /^\+\d+$/.test(number ?? '')));
    return api.act('POST', 'tools/test', { tool_id, arguments: whole, dry_run: true, ...numbers });
  });
  const shown = now.data;
  const rows = compared(whole, shown, before);
  const hidden = compared(given, shown, before).given.filter(({ state }) => state === 'hidden');
  const says = shown ? differences(rows, shown, execution) : [];
  return html`<section class="stack" aria-labelledby="h-beside"><h2 id="h-beside">What was sent, and what would be sent now</h2>
    ${says.length > 0 && html`<ul class="say stack">${says.map((sentence) => html`<li>${sentence}</li>`)}</ul>`}
    ${shown?.request && says.length === 0 && html`<p class="quiet">No differences: each argument stands in the request of now.</p>`}
    <div class="compare">
      <div class="stack"><h3>Arguments then <span class="quiet">as recorded, masked</span></h3><div data-request><${Rows} rows=${rows.given} nothing="It was given no arguments." /></div></div>
      <div class="stack" aria-live="polite"><h3>Request now <span class="quiet">dry run, nothing is sent</span></h3>
        ${refused ? html`<p class="quiet">${refused}</p>`
          : shown ? html`<div data-now=${shown.status}>${shown.request ? html`<${Rows} rows=${rows.sent} nothing="The request is empty." />` : html`<div class="say bad"><${Icon} name="bad" /><p><b>Nothing would be sent.</b> <bdi>${answerIn(shown)}</bdi></p></div>`}</div>`
          : now.error ? html`<${NotNow} error=${now.error} again=${now.again} />` : html`<${Skeleton} what="The request" />`}</div>
    </div>
    ${!refused && hidden.length > 0 && html`<${Fill} key=${execution.id} rows=${hidden} fill=${fill} />`}
  </section>`;
}

function answerIn({ answer }) {
  return answer?.error ?? answer?.message ?? JSON.stringify(answer ?? null);
}

function NotNow({ error, again }) {
  if (error instanceof Refused && error.status === 404) return html`<p data-now="gone">The tool was deleted since: nothing would be sent.</p>`;
  if (error instanceof Refused && error.status < 500 && error.status !== 429) return html`<div class="say bad" data-now="refused"><${Icon} name="bad" /><p><b>Nothing would be sent.</b> ${error.message}</p></div>`;
  return html`<${Failed} what="The request" error=${error} again=${again} />`;
}

function Rows({ rows, nothing }) {
  if (rows.length === 0) return html`<p class="quiet">${nothing}</p>`;
  return html`<dl class="values">${rows.map(({ path, text, state }) => html`<div key=${path} class=${state} data-state=${state}>
    <dt>${path} ${MARKS[state] && html`<${Mark} of=${MARKS[state]} />`}</dt><dd><bdi>${text === '' ? html`<span class="quiet">empty</span>` : text}</bdi></dd></div>`)}</dl>`;
}

function Mark({ of: [word, kind, icon] }) {
  return html`<span class="st ${kind} tiny"><${Icon} name=${icon} />${word}</span>`;
}

/** For the dry run only; not kept. */
function Fill({ rows, fill }) {
  const [typed, type] = useState({});
  useLater(() => fill(typed), 500, [typed]);
  return html`<form class="filling" aria-label="Hidden values" onSubmit=${(event) => event.preventDefault()}>
    ${rows.map(({ path, text }) => html`<label key=${path}><span>${path} <span class="quiet">${text}</span></span><input data-fill=${path} autocomplete="off" onInput=${({ target }) => type({ ...typed, [path]: target.value })} /></label>`)}
    <p class="quiet small">For this dry run only. They are not stored.</p></form>`;
}
