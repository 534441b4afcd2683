// Going on where a run failed: a plan first, with a yes for each action that may have happened.

import { html, useState } from '../htm-preact.js';
import { Icon } from '../shell/icons.js';
import { Choices, Failed, Skeleton } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Status } from '../shell/status.js';
import { Values } from '../shell/values.js';

const PLANS = { kept: ['succeeded', 'Kept'], would_run: ['queued', 'Would run'], unknown: ['unknown', 'May have happened'] };
const VERSIONS = [['same', 'The version of this run'], ['active', 'The active version']];

/** Whether a run can be retried. */
export function canRetry({ status, retried_by: by = null, dry_run: dry }) {
  return ['failed', 'partial_failure', 'cancelled'].includes(status) && !by && !dry;
}

export function Retry({ run, version, api, slug, role }) {
  const path = `runs/${encodeURIComponent(run.id)}/retry`;
  const refused = whyNot(role, 'member');
  const plan = useLive(refused ? null : `${run.id} ${version}`, () => api.act('POST', path, { version, dry_run: true }), () => null);
  const [yes, say] = useState([]);
  const [{ busy, problem }, tell] = useState({});
  const hrefOf = (retry) => addressOf({ slug, page: 'runs', id: run.id, query: { retry } });
  const actions = plan.data?.actions ?? [];
  const open = actions.filter(({ plan: kind, action_id: id }) => kind === 'unknown' && !yes.includes(id));
  const ready = plan.data && open.length === 0 && !refused && !busy;
  const start = async () => {
    if (!ready) return;
    tell({ busy: true });
    try {
      const { id } = await api.act('POST', path, { version, dry_run: false, confirm_unknown: yes });
      location.hash = addressOf({ slug, page: 'runs', id });
    } catch (error) {
      tell({ problem: error.message });
      plan.again();
    }
  };
  return html`<section class="stack" aria-labelledby="h-retry" data-retry=${plan.data ? 'planned' : 'none'}>
    <div class="titled"><h2 id="h-retry">Go on where it failed</h2>
      <div class="acts">${run.automation_id && html`<${Choices} label="Version" choices=${VERSIONS.map(([value, word]) => ({ value, word, href: hrefOf(value) }))} chosen=${version} />`}<a class="btn bare" data-close href=${hrefOf(null)}>Close</a></div></div>
    ${refused ? html`<p class="quiet">${refused}</p>` : plan.error ? html`<${Failed} what="The plan" error=${plan.error} again=${plan.again} />` : !plan.data ? html`<${Skeleton} what="The plan" />` : html`
      <p class="quiet">Nothing has run yet. What is kept is not done again: the new run uses its result.</p>
      <div class="sheet"><table class="rows plan"><thead><tr><th scope="col">Action</th><th scope="col">Plan</th><th scope="col">With</th></tr></thead>
        <tbody>${actions.map((action) => html`<${Planned} key=${action.action_id} action=${action} yes=${yes.includes(action.action_id)} say=${(given) => say((before) => [...before.filter((id) => id !== action.action_id), ...(given ? [action.action_id] : [])])} />`)}</tbody></table></div>
      ${problem && html`<p class="wrong" role="alert">${problem}</p>`}
      <div class="chips"><button type="button" class="btn main" id="retry-start" aria-disabled=${ready ? null : 'true'} aria-describedby="retry-why" onClick=${start}>Start the retry</button>
        <span class="quiet small" id="retry-why" role="status">${open.length > 0 ? `Confirm ${open.length === 1 ? 'the action' : `the ${open.length} actions`} that may have happened.` : ''}</span></div>`}
  </section>`;
}

function Planned({ action, yes, say }) {
  const { action_id: id, tool, plan, reason, arguments: given } = action;
  const [status, word] = PLANS[plan] ?? ['unknown', plan];
  return html`<tr data-plan=${plan}>
    <th scope="row" class="wrap"><bdi>${tool}</bdi> <code class="quiet">${id}</code></th>
    <td class="wrap"><${Status} of=${status}>${word}<//>${reason && html`<span class="below quiet"><bdi>${reason}</bdi></span>`}
      ${plan === 'unknown' && html`<label class="yes"><input type="checkbox" data-yes=${id} checked=${yes} onChange=${({ target }) => say(target.checked)} /> Run it, even if it happens twice</label>`}</td>
    <td class="wrap">${plan === 'kept' ? html`<span class="quiet">its result of then</span>` : given && html`<details class="same" open><summary>Arguments</summary><${Values} values=${given} /></details>`}</td>
  </tr>`;
}

/** Both ways between a run and its retry. */
export function Links({ run, slug }) {
  const link = (id, word) => id && html`<div><dt>${word}</dt><dd><a data-retry-link href=${addressOf({ slug, page: 'runs', id })}>Open that run</a></dd></div>`;
  return html`${link(run.retry_of, 'Retry of')}${link(run.retried_by, 'Retried by')}`;
}

export function Offer({ run, slug, role }) {
  if (!canRetry(run)) return null;
  const refused = whyNot(role, 'member');
  return html`<a class="btn main" id="retry" aria-disabled=${refused ? 'true' : null} href=${addressOf({ slug, page: 'runs', id: run.id, query: { retry: 'same' } })}><${Icon} name="runs" />Go on where it failed…</a>`;
}
