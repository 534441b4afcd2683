// One run: the reason for waiting, its steps on an axis of time, and the chosen step.

import { html } from '../htm-preact.js';
import { axisOf, barOf, clock, percent, placeOf, segmentsOf } from '../shell/axis.js';
import { Absent } from '../shell/absent.js';
import { Sure } from '../shell/acting.js';
import { Icon } from '../shell/icons.js';
import { Failed } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact, left, length, relative } from '../shell/moments.js';
import { dollars } from '../shell/money.js';
import { Pane } from '../shell/pane.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Status } from '../shell/status.js';
import { Values } from '../shell/values.js';
import { canRetry, Links, Offer, Retry } from './retry.js';
import { isOver, stepsOf, triggerOf, waitOf } from './words.js';

const EVERY = 1_500;

export function RunView({ id, query, api, slug, role, nameOf }) {
  const live = useLive(`${slug} ${id}`, () => api.read(`runs/${encodeURIComponent(id)}`), (run) => (run === null || !isOver(run) ? EVERY : null));
  const { data: run, error, at } = live;
  const crumb = { word: 'Runs', href: addressOf({ slug, page: 'runs' }) };
  if (!run) return html`<${Absent} word="run" icon="runs" crumb=${crumb} live=${live} />`;
  const steps = stepsOf(run);
  const bad = steps.find(({ status }) => ['failed', 'unknown', 'refused'].includes(status));
  const chosen = steps.find((step) => step.id === query.step) ?? bad ?? null;
  const hrefOf = (step) => addressOf({ slug, page: 'runs', id, query: { step } });
  return html`<${Main} title=${nameOf(run)} crumb=${crumb} status=${html`<${Status} of=${run.status} />`} acts=${isOver(run) ? html`<${Offer} run=${run} slug=${slug} />` : html`<${Cancel} run=${run} api=${api} role=${role} again=${live.again} />`}>
    <div class="beside runpage" data-run=${run.status}>
      <div class="body">
        ${error && html`<${Failed} what="The run" error=${error} at=${at} again=${live.again} />`}
        <section aria-label="State">
          <${Waits} run=${run} slug=${slug} />
          ${run.error && html`<div class="say bad"><${Icon} name="bad" /><p><b>It did not reach its end.</b> <bdi>${run.error}</bdi></p></div>`}
          <${Facts} run=${run} slug=${slug} nameOf=${nameOf} />
        </section>
        ${query.retry && canRetry(run) && html`<${Retry} key=${query.retry} run=${run} version=${query.retry} api=${api} slug=${slug} role=${role} />`}
        <${Steps} run=${run} steps=${steps} hrefOf=${hrefOf} chosen=${chosen} />
        ${run.result !== null && html`<section><h2>Result</h2><div class="say"><${Values} values=${run.result} /></div></section>`}
      </div>
      <${Pane} id=${query.step} label="Step">
        ${chosen ? html`<${Step} key=${chosen.id} step=${chosen} />` : html`<section><p class="quiet">Choose a step to see what it was given and what it gave back.</p></section>`}
        ${run.trigger_data && html`<section><h3>What began it</h3><${Values} values=${run.trigger_data} /></section>`}
        ${run.prompt && html`<section><h3>Prompt</h3><p dir="auto">${run.prompt}</p></section>`}
      <//>
    </div>
  <//>`;
}

function Waits({ run, slug }) {
  const says = waitOf(run);
  if (!says) return null;
  const { what, id, until, error } = run.waits_for;
  const page = { approval: 'approvals', run: 'runs' }[what];
  return html`<div class="say wait" data-waits=${what}><${Icon} name="wait" />
    <p><b>${says}${until && ` until ${exact(until)}`}.</b> ${until && `${left(until)}. `}${what === 'approval' && 'An admin decides; not decided by then, the action counts as refused.'} <bdi>${error}</bdi></p>
    ${page && id && html`<div class="acts"><a class=${what === 'approval' ? 'btn main' : 'btn'} href=${addressOf({ slug, page, id })}>${what === 'approval' ? 'Decide' : 'See that run'}</a></div>`}
  </div>`;
}

function Facts({ run, slug, nameOf }) {
  const { spent, limits } = run;
  const facts = [
    ['Began by', triggerOf(run)],
    ['Began', `${exact(run.created_at)}, ${relative(run.created_at)}`],
    ...(run.automation_id ? [['Version', run.automation_version], ['Actions', `${run.actions_executed} succeeded, ${run.actions_failed} failed`]] : []),
    ['Took', length(run.duration_ms)],
    ['Tokens', `${spent.tokens.toLocaleString('en')} of ${limits.tokens.toLocaleString('en')}`],
    ['Cost', `${dollars(spent.cost)} of ${dollars(limits.cost)}`],
    ...(run.dry_run ? [['Dry run', 'nothing was changed outside']] : []),
  ];
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
    ${run.automation_id && html`<div><dt>Automation</dt><dd><a href=${addressOf({ slug, page: 'runs', query: { automation_id: run.automation_id } })}>All runs of <bdi>${nameOf(run)}</bdi></a></dd></div>`}<${Links} run=${run} slug=${slug} />${run.event_id && html`<div><dt>Event</dt><dd><a href=${addressOf({ slug, page: 'events', id: run.event_id })}>Open the event</a></dd></div>`}</dl>`;
}

function Steps({ run, steps, hrefOf, chosen }) {
  const began = Date.parse(run.started_at ?? run.created_at);
  const worked = steps.map(({ from, took }) => [from, from + (took ?? 0)]);
  const end = isOver(run) ? Math.max(Date.parse(run.finished_at) - began || 0, ...worked.map(([, to]) => to)) : Date.now() - began;
  const span = Math.max(end, 1);
  const done = Math.max(0, ...worked.map(([, to]) => to));
  const parts = segmentsOf(span, [[0, 0], [span, span], ...worked]);
  const at = (time) => percent(placeOf(time, parts));
  if (steps.length === 0) return html`<section><h2>Steps</h2><p class="quiet">${isOver(run) ? 'It ended before its first step.' : 'No step has ended yet.'}</p></section>`;
  return html`<section aria-labelledby="h-steps"><h2 id="h-steps">Steps</h2>
    <div class="sheet"><table class="rows tree">
      <thead><tr><th scope="col">Step</th><th scope="col">Status</th><th scope="col" class="num c-took">Took</th>
        <th scope="col" class="c-bar"><svg class="rowaxis" width="100%" height="20" role="img" aria-label=${`Axis: time since it began, ${length(span)} in all`}>
          ${axisOf(span, parts, 4).map((time) => html`<text x=${at(time)} y="14" text-anchor=${placeOf(time, parts) < 0.05 ? 'start' : placeOf(time, parts) > 0.9 ? 'end' : 'middle'}>${clock(time)}</text>`)}
        </svg></th></tr></thead>
      <tbody>${steps.map((step) => html`
        <tr class=${step.condition && step.status === 'skipped' ? 'hasbelow' : ''}>
          <th scope="row" class="l${step.level}"><${Icon} name="tool" /><a class="open" data-row=${step.id} href=${hrefOf(step.id)} aria-current=${step.id === chosen?.id ? 'true' : null}><bdi>${step.title}</bdi></a> <code class="quiet">${step.note}</code></th>
          <td><${Status} of=${step.status} /></td>
          <td class="num c-took">${length(step.took)}</td>
          <td class="c-bar">${step.took !== null && html`<svg class="rowbar" width="100%" height="24" role="img" aria-label=${`From ${clock(step.from)} to ${clock(step.from + step.took)}`}>
            <rect class="ran ${['failed', 'unknown', 'refused'].includes(step.status) ? 'bad' : ''}" ...${barOf(placeOf(step.from, parts), placeOf(step.from + step.took, parts))} y="7" height="10" rx="3" />
          </svg>`}</td>
        </tr>
        ${step.condition && step.status === 'skipped' && html`<tr class="why"><td colspan="4"><p>${reasons(step.condition).join('; ')}</p></td></tr>`}`)}
        ${run.waits_for && html`<tr><th scope="row" class="l0"><${Icon} name="wait" />${waitOf(run)}</th><td><${Status} of=${run.status} /></td><td class="num c-took">${length(span - done)}</td>
          <td class="c-bar"><svg class="rowbar" width="100%" height="24" aria-hidden="true"><rect class="waits" x=${at(done)} y="7" width=${percent(1 - placeOf(done, parts))} height="10" rx="3" /></svg></td></tr>`}
      </tbody>
    </table></div></section>`;
}

/** Clause by clause. */
function reasons({ clauses }) {
  return clauses.flatMap((clause) => (clause.clauses ? reasons(clause) : clause.holds ? [] : [clause.text]));
}

function Step({ step }) {
  return html`
    <section class="panehead"><h2><bdi>${step.title}</bdi></h2><${Status} of=${step.status} /></section>
    ${step.error && html`<section><div class="say bad"><${Icon} name="bad" /><p><bdi>${step.error}</bdi></p></div>
      ${step.status === 'unknown' && html`<p class="small">It may have happened. It is not done again.</p>`}</section>`}
    ${step.tokens && html`<section><dl class="facts"><div><dt>Tokens in</dt><dd>${step.tokens.prompt_tokens}</dd></div><div><dt>of them cached</dt><dd>${step.tokens.cached_tokens}</dd></div><div><dt>Tokens out</dt><dd>${step.tokens.completion_tokens}</dd></div><div><dt>Cost</dt><dd>${dollars(step.tokens.cost)}</dd></div></dl></section>`}
    ${step.condition && html`<section><h3>Its condition ${step.condition.holds ? 'held' : 'did not hold'}</h3><${Clauses} of=${step.condition} /></section>`}
    ${step.given !== null && step.given !== undefined && html`<section><h3>What it was given <span class="quiet">masked</span></h3><div class="say" data-request><${Values} values=${step.given} /></div></section>`}
    ${step.gave !== null && step.gave !== undefined && html`<section><h3>What it gave back</h3><div class="say"><${Values} values=${step.gave} /></div></section>`}`;
}

function Clauses({ of }) {
  return html`<ul class="stack small">${of.clauses.map((clause) => html`<li>${clause.clauses ? html`<${Clauses} of=${clause} />` : html`<${Status} of=${clause.holds ? 'succeeded' : 'skipped'}>${clause.holds ? 'Yes' : 'No'}<//> <bdi>${clause.text}</bdi>`}</li>`)}</ul>`;
}

function Cancel({ run, api, role, again }) {
  if (run.cancel_requested_at) return html`<span class="quiet small">It ends with its next step.</span>`;
  const cancel = async () => {
    await api.act('POST', `runs/${run.id}/cancel`);
    again();
  };
  return html`<${Sure} id="cancel" word="Cancel run…" title="Cancel this run?" yes="Cancel the run" refused=${whyNot(role, 'member')} does=${cancel}><p>What it has done stays done. It begins nothing more.</p><//>`;
}
