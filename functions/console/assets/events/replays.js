// A replay of many events: filters, a plan that starts nothing, then its progress.

import { html } from '../htm-preact.js';
import { Absent } from '../shell/absent.js';
import { Filters } from '../shell/filter_form.js';
import { asked, SINCE } from '../shell/filters.js';
import { Icon } from '../shell/icons.js';
import { Failed, List, Nothing } from '../shell/list.js';
import { useLive, useRows } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact, left, Moment, relative } from '../shell/moments.js';
import { whyNot } from '../shell/roles.js';
import { addressOf } from '../shell/route.js';
import { Act, Problem, Sure, useAct } from '../shell/acting.js';
import { Status } from '../shell/status.js';

const EVERY = 1_500;
const WHICH = [['', 'All'], ['unmatched', 'Started nothing'], ['only_failed', 'Run failed']];
const number = (count) => count.toLocaleString('en');
const runsIn = (count) => `${number(count)} ${count === 1 ? 'run' : 'runs'}`;

/** For the filters in the address. */
export function planOf({ which, ...query }, now = Date.now()) {
  const given = asked(query, ['since', 'until', 'service', 'automation_id'].map((name) => ({ name })), now);
  const body = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  return which ? { ...body, [which]: true } : body;
}

/** `at`: the address's query; its `replay` is `all`, `new` or an id. */
export function Replays({ at: { replay, ...query }, ...told }) {
  if (replay === 'all') return html`<${All} ...${told} />`;
  if (replay === 'new') return html`<${Plan} query=${query} ...${told} />`;
  return html`<${Replay} key=${replay} id=${replay} ...${told} />`;
}

const hrefOf = (slug, replay, query = {}) => addressOf({ slug, page: 'events', query: { replay, ...query } });
const crumbOf = (slug) => ({ word: 'Events', href: addressOf({ slug, page: 'events' }) });
const allOf = (slug) => ({ word: 'Replays', href: hrefOf(slug, 'all') });

function All({ api, slug }) {
  const rows = useRows(`${slug} replays`, (cursor) => api.read('events/replays', { limit: 50, cursor }));
  const columns = [
    { head: 'Planned', cls: 'c-who', cell: ({ created_at: at }) => exact(at), below: ({ created_at: at }) => html`<span class="sub"><${Moment} at=${at} /></span>` },
    { head: 'Status', cls: 'c-st', cell: ({ status }) => html`<${Status} of=${status} />` },
    { head: 'Events', cls: 'num c-len', cell: ({ events }) => number(events) },
    { head: 'Runs started', cls: 'num c-cost', cell: ({ progress }) => number(progress.started) },
  ];
  const empty = html`<${Nothing} icon="inbox" title="No replay yet"><p class="quiet">After an outage or a repaired automation, past events can start its runs again. A plan shows first how many.</p><a class="btn" href=${hrefOf(slug, 'new')}>Plan a replay</a><//>`;
  return html`<${Main} title="Replays" crumb=${crumbOf(slug)} acts=${html`<a class="btn" href=${hrefOf(slug, 'new')}>Plan a replay</a>`}>
    <div class="listside"><${List} what="Replays" name="calls" rows=${rows} columns=${columns} hrefOf=${({ id }) => hrefOf(slug, id)} empty=${empty} /></div><//>`;
}

function Plan({ query, api, slug, role, names }) {
  const { busy, problem, act } = useAct();
  const fields = [
    SINCE,
    { name: 'service', word: 'Service' },
    { name: 'automation_id', word: 'Starts', options: [['', 'As before'], ...names] },
    { name: 'which', word: 'Events', options: WHICH },
  ];
  const plan = () => act(async () => {
    const { id } = await api.act('POST', 'events/replays', planOf(query));
    location.hash = hrefOf(slug, id);
  });
  return html`<${Main} title="Plan a replay" crumb=${allOf(slug)}><${Filters} fields=${fields} query=${query} to=${(changed) => hrefOf(slug, 'new', changed)} />
    <div class="body"><section class="stack" aria-label="Plan"><p>A plan counts the events and the runs that they would start. It starts nothing.</p>
      ${query.automation_id ? html`<p class="quiet">An event that started this automation before starts it again. For other events its filter decides.</p>`
        : html`<p class="quiet">${query.which === 'unmatched' ? 'Choose the automation that these events start: they started none before.' : 'Each event starts the automations that it started before.'}</p>`}
      <${Problem} of=${problem} />
      <div class="chips"><${Act} id="plan-replay" kind="main" refused=${whyNot(role, 'member')} busy=${busy} onClick=${plan}>Make the plan<//></div></section></div><//>`;
}

function Replay({ id, api, slug, role, nameOf }) {
  const path = `events/replays/${encodeURIComponent(id)}`;
  const live = useLive(`${slug} ${id}`, () => api.read(path), (plan) => (plan === null || plan.status === 'running' ? EVERY : null));
  const { busy, problem, act } = useAct();
  const plan = live.data;
  if (!plan) return html`<${Absent} word="replay" icon="inbox" crumb=${allOf(slug)} live=${live} />`;
  const refused = whyNot(role, 'member');
  const ask = async (what) => {
    live.put(await api.act('POST', `${path}/${what}`));
    live.again();
  };
  const planned = plan.status === 'planned';
  const acts = html`${planned && plan.runs > 0 && html`<${Act} id="replay-start" kind="main" refused=${refused} busy=${busy} onClick=${() => act(() => ask('start'))}>Start ${runsIn(plan.runs)}<//>`}
    ${(planned || plan.status === 'running') && html`<${Sure} id="replay-cancel" word="Cancel…" title="Cancel this replay?" yes="Cancel the replay" no="Keep it" refused=${refused && ' '} does=${() => ask('cancel')}><p>Runs that have started go on. No further run starts.</p><//>`}`;
  const names = new Map(plan.automations.map(({ automation_id: one, name }) => [one, name ?? 'A deleted automation']));
  const known = (one) => html`<bdi>${names.get(one) ?? nameOf(one)}</bdi>`;
  return html`<${Main} title="Replay of events" crumb=${allOf(slug)} status=${html`<${Status} of=${plan.status} />`} acts=${acts}>
    <div class="body" data-replay=${plan.status}>
      ${live.error && html`<${Failed} what="The replay" error=${live.error} at=${live.at} again=${live.again} />`}
      <${Problem} of=${problem} />
      <section class="stack" aria-label="State">
        ${planned && html`<div class="say wait"><${Icon} name="wait" /><p><b>Nothing has started yet.</b> The runs act for real: they send messages again. Start them by ${exact(plan.start_before)}, ${left(plan.start_before)}.</p></div>`}
        ${plan.status === 'expired' && html`<div class="say"><${Icon} name="stop" /><p><b>The plan was not started in time.</b> Make a new one.</p><div class="acts"><a class="btn" href=${hrefOf(slug, 'new', again(plan.filter))}>Plan again</a></div></div>`}
        ${plan.waits && html`<div class="say wait" data-waits><${Icon} name="wait" /><p><b>It waits until ${exact(plan.waits.until)}.</b> <bdi>${plan.waits.why}</bdi></p></div>`}
        ${plan.bound && html`<div class="say wait"><${Icon} name="part" /><p><b>It covers the oldest ${number(plan.bound.events)} events.</b> <bdi>${plan.bound.why}</bdi></p><div class="acts"><a class="btn" href=${hrefOf(slug, 'new', again({ ...plan.filter, since: plan.bound.until, until: null }))}>Plan the rest</a></div></div>`}
        <dl class="facts"><div><dt>Events</dt><dd>${number(plan.events)}</dd></div><div><dt>Runs</dt><dd>${number(plan.runs)}</dd></div><div><dt>Planned</dt><dd>${exact(plan.created_at)}, ${relative(plan.created_at)}</dd></div>
          ${factsOf(plan.filter, nameOf).map(([word, says]) => html`<div key=${word}><dt>${word}</dt><dd><bdi>${says}</bdi></dd></div>`)}</dl>
      </section>
      ${plan.started_at && html`<${Progress} plan=${plan} slug=${slug} known=${known} />`}
      <section aria-labelledby="h-start"><h2 id="h-start">${planned ? 'Would start' : 'Automations'}</h2>
        ${plan.automations.length === 0 ? html`<p class="quiet">No automation would run for these events. Choose the automation to start, or other events.</p>`
          : html`<div class="sheet"><table class="rows"><thead><tr><th scope="col">Automation</th><th scope="col" class="num">Runs</th><th scope="col" class="num">Skipped</th></tr></thead><tbody>
            ${plan.automations.map(({ automation_id: one, runs, skipped, why }) => html`<tr key=${one}><th scope="row" class="wrap">${known(one)}${why && html` <span class="quiet small"><bdi>${why}</bdi></span>`}</th><td class="num">${number(runs)}</td><td class="num">${number(skipped)}</td></tr>`)}</tbody></table></div>`}
      </section>
    </div><//>`;
}

/** The plan's filters for the address. */
function again({ unmatched, only_failed: failed, ...filter }) {
  return { ...filter, until: null, which: unmatched ? 'unmatched' : failed ? 'only_failed' : null };
}

function factsOf({ service, since, until, automation_id: automation, unmatched, only_failed: failed }, nameOf) {
  const facts = [['From', since && exact(since)], ['Until', until && exact(until)], ['Service', service], ['Starts', automation && nameOf(automation)], ['Only', unmatched ? 'events that started nothing' : failed && 'where the run failed']];
  return facts.filter(([, says]) => says);
}

function Progress({ plan, slug, known }) {
  const { events: done, started, skipped, failed } = plan.progress;
  const share = plan.events > 0 ? Math.min(done / plan.events, 1) : 1;
  return html`<section class="stack" aria-labelledby="h-progress"><h2 id="h-progress">Progress</h2>
    <svg class="meter" width="100%" height="8" role="img" aria-label=${`${Math.round(share * 100)} percent done`}><rect class="all" width="100%" height="8" rx="4" /><rect class="used" width=${`${(share * 100).toFixed(1)}%`} height="8" rx="4" /></svg>
    <dl class="facts"><div><dt>Events done</dt><dd>${number(done)} of ${number(plan.events)}</dd></div><div><dt>Runs started</dt><dd>${number(started)}</dd></div><div><dt>Skipped</dt><dd>${number(skipped)}</dd></div><div><dt>Failed</dt><dd>${number(failed)}</dd></div></dl>
    ${plan.skipped.length > 0 && html`<ul class="stack small">${plan.skipped.map(({ reason, why, count }) => html`<li key=${reason}><${Status} of="skipped">${number(count)} skipped<//> <bdi>${why}</bdi></li>`)}</ul>`}
    ${plan.failures.length > 0 && html`<ul class="stack small">${plan.failures.map(({ event_id: event, automation_id: one, why }) => html`<li key=${`${event} ${one}`}><${Status} of="failed">Did not start<//> ${known(one)}: <bdi>${why}</bdi> <a href=${addressOf({ slug, page: 'events', id: event })}>See the event</a></li>`)}</ul>`}
  </section>`;
}
