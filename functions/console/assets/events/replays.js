// A replay of many events: a plan first, then its progress.

import { html, useState } from '../htm-preact.js';
import { Absent } from '../shell/absent.js';
import { Icon } from '../shell/icons.js';
import { Failed } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact, left } from '../shell/moments.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Status } from '../shell/status.js';

const EVERY = 1_500;

/** Plans a replay of the events that the filter names; nothing runs by that. */
export function PlanMaker({ api, slug, role, filter }) {
  const [{ busy, problem }, tell] = useState({});
  const refused = whyNot(role, 'admin');
  const plan = async () => {
    if (refused || busy) return;
    tell({ busy: true });
    try {
      const { matched, ...others } = filter;
      const given = Object.fromEntries(Object.entries({ ...others, unmatched: matched === 'false' || null }).filter(([, value]) => value !== null));
      const { id } = await api.act('POST', 'events/replays', given);
      location.hash = addressOf({ slug, page: 'events', query: { replay: id } });
    } catch (error) {
      tell({ problem: error.message });
    }
  };
  return html`${(refused || problem) && html`<span class="small ${problem ? 'wrong' : 'quiet'}" id="why-no-plan" role=${problem ? 'alert' : null}>${problem ?? refused}</span>`}
    <button type="button" class="btn" id="plan-replay" aria-disabled=${refused || busy ? 'true' : null} aria-describedby=${refused ? 'why-no-plan' : null} onClick=${plan}>Replay these events…</button>`;
}

export function ReplayView({ id, api, slug, role, nameOf }) {
  const path = `events/replays/${encodeURIComponent(id)}`;
  const live = useLive(`${slug} ${id}`, () => api.read(path), (plan) => (plan === null || plan.status === 'running' ? EVERY : null));
  const [problem, tell] = useState(null);
  const plan = live.data;
  const crumb = { word: 'Events', href: addressOf({ slug, page: 'events' }) };
  if (!plan) return html`<${Absent} word="replay" icon="inbox" crumb=${crumb} live=${live} />`;
  const refused = whyNot(role, 'admin');
  const act = async (what) => {
    if (refused) return;
    try {
      await api.act('POST', `${path}/${what}`);
      tell(null);
    } catch (error) {
      tell(error.message);
    }
    live.again();
  };
  const runs = plan.automations.reduce((sum, one) => sum + one.runs, 0);
  const button = (what, word, cls) => html`<button type="button" id="replay-${what}" class="btn ${cls}" aria-disabled=${refused ? 'true' : null} aria-describedby=${refused ? 'why-no-start' : null} onClick=${() => act(what)}>${word}</button>`;
  return html`<${Main} title="Replay of events" crumb=${crumb} status=${html`<${Status} of=${plan.status} />`}
    acts=${html`${refused && html`<span class="quiet small" id="why-no-start">${refused}</span>`}
      ${plan.status === 'planned' && runs > 0 && button('start', `Start ${runs} ${runs === 1 ? 'run' : 'runs'}`, 'main')}${['planned', 'running'].includes(plan.status) && button('cancel', 'Cancel', '')}`}>
    <div class="body" data-replay=${plan.status}>
      ${live.error && html`<${Failed} what="The replay" error=${live.error} at=${live.at} again=${live.again} />`}
      ${problem && html`<div class="say bad" role="alert"><${Icon} name="bad" /><p>${problem}</p></div>`}
      ${plan.status === 'planned' && html`<div class="say wait"><${Icon} name="wait" /><p><b>Nothing has run yet.</b> Once started, the runs act for real: what they send is sent again. The plan holds until ${exact(plan.expires_at)}, ${left(plan.expires_at)}.</p></div>`}
      <section aria-label="Facts"><dl class="facts"><div><dt>Events</dt><dd>${plan.events.toLocaleString('en')}${plan.bounded ? `, the newest ${plan.limit.toLocaleString('en')} at most` : ''}</dd></div>
        ${Object.entries(plan.filter).filter(([, value]) => value !== null && value !== false).map(([name, value]) => html`<div key=${name}><dt>${NAMES[name] ?? name}</dt><dd><bdi>${saidOf(name, value, nameOf)}</bdi></dd></div>`)}</dl></section>
      ${plan.status !== 'planned' && html`<${Progress} plan=${plan} />`}
      <section aria-labelledby="h-start"><h2 id="h-start">${plan.status === 'planned' ? 'Would start' : 'Automations'}</h2>
        ${plan.automations.length === 0 ? html`<p class="quiet">No automation would run for these events. Activate one for them first, or change the filter.</p>`
          : html`<table><thead><tr><th scope="col">Automation</th><th scope="col" class="num">Runs</th></tr></thead><tbody>${plan.automations.map(({ automation_id: one, runs: count }) => html`<tr key=${one}><th scope="row" class="wrap"><bdi>${nameOf(one)}</bdi></th><td class="num">${count}</td></tr>`)}</tbody></table>`}
      </section>
    </div>
  <//>`;
}

const NAMES = { service: 'Service', since: 'From', until: 'Until', automation_id: 'Automation', unmatched: 'Only those that began nothing', only_failed: 'Only those whose run failed' };

function saidOf(name, value, nameOf) {
  if (name === 'automation_id') return nameOf(value);
  if (value === true) return 'yes';
  return ['since', 'until'].includes(name) ? exact(value) : value;
}

function Progress({ plan }) {
  const { done = 0, started = 0, skipped = 0, failed = 0 } = plan.progress;
  const share = plan.events > 0 ? Math.min(done / plan.events, 1) : 1;
  return html`<section class="stack" aria-labelledby="h-progress"><h2 id="h-progress">Progress</h2>
    <svg class="meter" width="100%" height="8" role="img" aria-label=${`${Math.round(share * 100)} percent done`}><rect class="all" width="100%" height="8" rx="4" /><rect class="used" width=${`${(share * 100).toFixed(1)}%`} height="8" rx="4" /></svg>
    <dl class="facts" aria-live="polite"><div><dt>Done</dt><dd>${done} of ${plan.events}</dd></div><div><dt>Runs started</dt><dd>${started}</dd></div><div><dt>Skipped</dt><dd>${skipped}</dd></div><div><dt>Failed</dt><dd>${failed}</dd></div></dl>
    ${plan.skipped?.length > 0 && html`<ul class="stack small">${plan.skipped.map(({ event_id: event, why }) => html`<li key=${event}><code>${event}</code> <bdi>${why}</bdi></li>`)}</ul>`}
  </section>`;
}
