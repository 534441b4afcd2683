// Retries of failed runs: a plan first, with a yes for each action that may have happened.

import { html, useState } from '../htm-preact.js';
import { Act, Problem, useAct } from '../shell/acting.js';
import { Choices, Failed, Skeleton } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Status } from '../shell/status.js';
import { Values } from '../shell/values.js';
import { isOver } from './words.js';

const STEPS = { kept: ['succeeded', 'Kept'], runs: ['queued', 'Runs'], unknown: ['unknown', 'May have happened'] };
const VERSIONS = [['same', 'The version of this run'], ['active', 'The active version']];

/** The API decides. */
export function canRetry({ status, retried_by: by = null, dry_run: dry, automation_id: automation, started_at: began }) {
  return isOver({ status }) && !['completed', 'run_limit'].includes(status) && Boolean(automation && began) && !by && !dry;
}

export function Retry({ run, version, api, slug, role }) {
  const path = `runs/${encodeURIComponent(run.id)}/retry`;
  const refused = whyNot(role, 'member');
  const plan = useLive(refused ? null : `${run.id} ${version}`, () => api.act('POST', path, { version, dry_run: true }), () => null);
  const [yes, say] = useState([]);
  const { busy, problem, act } = useAct();
  const hrefOf = (retry) => addressOf({ slug, page: 'runs', id: run.id, query: { retry } });
  const actions = plan.data?.actions ?? [];
  const open = actions.filter(({ step, action_id: id }) => step === 'unknown' && !yes.includes(id));
  const start = () => act(async () => {
    const { run: { id } } = await api.act('POST', path, { version, dry_run: false, confirm_unknown: yes });
    location.hash = addressOf({ slug, page: 'runs', id });
  });
  const unconfirmed = open.length > 0 ? `Confirm ${open.length === 1 ? 'the action' : `the ${open.length} actions`} that may have happened.` : null;
  return html`<section class="stack" aria-labelledby="h-retry" data-retry=${plan.data ? 'planned' : 'none'}>
    <div class="titled"><h2 id="h-retry">Go on where it failed</h2>
      <div class="acts"><${Choices} label="Version" of=${VERSIONS} to=${hrefOf} chosen=${version} /><a class="btn bare" data-close href=${hrefOf(null)}>Close</a></div></div>
    ${refused ? html`<p class="quiet">${refused}</p>` : plan.error ? html`<${Failed} what="The plan" error=${plan.error} again=${plan.again} />` : !plan.data ? html`<${Skeleton} what="The plan" />` : html`
      <p class="quiet">Nothing has run yet. What is kept is not done again: the new run uses its result.</p>
      <div class="sheet"><table class="rows plan"><thead><tr><th scope="col">Action</th><th scope="col">Plan</th><th scope="col">With</th></tr></thead>
        <tbody>${actions.map((action) => html`<${Planned} key=${action.action_id} action=${action} yes=${yes.includes(action.action_id)} say=${(given) => say((before) => [...before.filter((id) => id !== action.action_id), ...(given ? [action.action_id] : [])])} />`)}</tbody></table></div>
      <${Problem} of=${problem} />
      <div class="chips"><${Act} id="retry-start" kind="main" refused=${unconfirmed} busy=${busy} onClick=${start}>Start the new run<//></div>`}
  </section>`;
}

function Planned({ action, yes, say }) {
  const { action_id: id, tool, step, reason, arguments: given } = action;
  const [status, word] = STEPS[step] ?? ['unknown', step];
  return html`<tr data-plan=${step}>
    <th scope="row" class="wrap"><bdi>${tool}</bdi> <code class="quiet">${id}</code></th>
    <td class="wrap"><${Status} of=${status}>${word}<//>${reason && html`<span class="below quiet"><bdi>${reason}</bdi></span>`}
      ${step === 'unknown' && html`<label class="yes"><input type="checkbox" checked=${yes} onChange=${({ target }) => say(target.checked)} /> Run it, even if it happens twice</label>`}</td>
    <td class="wrap">${step === 'kept' ? html`<span class="quiet">its earlier result</span>` : given && html`<details class="same" open><summary>Arguments</summary><${Values} values=${given} /></details>`}</td>
  </tr>`;
}

export function Links({ run, slug }) {
  const link = (id, word) => id && html`<div><dt>${word}</dt><dd><a data-retry-link href=${addressOf({ slug, page: 'runs', id })}>Open that run</a></dd></div>`;
  return html`${link(run.retry_of, 'Goes on from')}${link(run.retried_by, 'Went on in')}`;
}

export function Offer({ run, slug }) {
  return canRetry(run) && html`<a class="btn main" id="retry" href=${addressOf({ slug, page: 'runs', id: run.id, query: { retry: 'same' } })}>Go on where it failed…</a>`;
}
