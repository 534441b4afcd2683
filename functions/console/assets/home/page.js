// Home: urgent matters, the calls of the last day, and the budgets.

import { waitingIn } from '../approvals/asked.js';
import { html } from '../htm-preact.js';
import { Bars } from '../shell/bars.js';
import { asked, SINCE } from '../shell/filters.js';
import { Failed, Nothing, Skeleton } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { left, Moment } from '../shell/moments.js';
import { addressOf } from '../shell/route.js';
import { Status } from '../shell/status.js';
import { budgetsOf } from '../usage/budgets.js';
import { Meters } from '../usage/meters.js';
import { callsByHour, needsOf } from './needs.js';

const EVERY = 10_000;
/** Calls per page. */
const MOST = 200;

export function View({ api, slug }) {
  const live = useLive(slug, () => read(api), () => EVERY);
  const { data, error, at, again } = live;
  return html`<${Main} title="Home"><div class="body" data-home>
    ${error && html`<${Failed} what="Home" error=${error} at=${at} again=${again} />`}
    ${!data && !error && html`<${Skeleton} what="Home" />`}
    ${data && html`<${Needs} needs=${data.needs} more=${data.more} slug=${slug} />
      <div class="two"><${Hours} ...${data.byHour} slug=${slug} />
        <section class="stack" aria-labelledby="h-budgets"><h2 id="h-budgets">Budgets</h2><${Meters} budgets=${budgetsOf(data.usage)} /></section></div>`}
  </div><//>`;
}

async function read(api) {
  const since = asked({ since: '24h' }, [SINCE]);
  const [approvals, automations, runs, calls, failed, tools, usage] = await Promise.all([
    waitingIn(api),
    api.read('automations', { limit: 200 }),
    api.read('runs', { failed: true, dry_run: false, limit: 50, ...since }),
    api.read('calls', { limit: MOST, ...since }),
    api.read('executions', { failed: true, limit: 100, ...since }),
    api.read('tools', { limit: 200 }),
    api.read('usage'),
  ]);
  const labels = new Map(tools.items.map(({ id, label }) => [id, label]));
  const names = new Map(automations.items.map(({ id, name }) => [id, name]));
  const inCalls = new Map(calls.items.map((call) => [call.id, call]));
  // The run shows its failures.
  const failures = failed.items.filter(({ run_id: run }) => !run)
    .map((execution) => ({ call: inCalls.get(execution.call_id) ?? null, execution, tool: labels.get(execution.tool_id) ?? 'A tool' }));
  const paused = automations.items.filter(({ status }) => status === 'paused');
  const nameOf = (id) => (id ? (names.get(id) ?? 'An automation') : 'A prompt');
  const needs = needsOf({ approvals: approvals.items, paused, runs: runs.items, calls: calls.items, failures, usage, nameOf });
  // Filtered pages may be short and go on.
  const more = [approvals, automations, runs, calls, failed].some(({ next_cursor: next }) => next !== null);
  return { needs, more, byHour: callsByHour(calls.items, { whole: calls.next_cursor === null }), usage };
}

function Needs({ needs, more, slug }) {
  const rest = more && html`<p class="quiet small">Older entries were not looked through.</p>`;
  if (needs.length === 0) {
    return html`<section aria-labelledby="h-need"><h2 id="h-need">Needs a person now</h2><${Nothing} icon="hand" title=${more ? 'Nothing found that needs you' : 'Nothing needs you'}>
      <p class="quiet">Approvals, unproven claims, failed tools and runs of the last day, paused automations and budgets near their end appear here.</p><//>${rest}</section>`;
  }
  return html`<section aria-labelledby="h-need"><div class="titled"><h2 id="h-need">Needs a person now</h2><span class="quiet small">${more && 'at least '}${needs.length}</span></div>${rest}
    <div class="sheet"><table class="needs rows"><thead class="aloud"><tr><th scope="col">Kind</th><th scope="col">What and why</th><th scope="col">Time</th><th scope="col">Next step</th></tr></thead>
      <tbody>${needs.map(({ id, status, word, title, why, at, until, page, to, query, act }) => html`<tr key=${id} data-need=${status}>
        <td><${Status} of=${status}>${word}<//></td>
        <th scope="row" class="wrap"><span class="strong"><bdi>${title}</bdi></span> <span class="quiet"><bdi>${why}</bdi></span></th>
        <td class="until quiet">${until ? left(until) : html`<${Moment} at=${at} />`}</td>
        <td class="num"><a class=${status === 'pending' ? 'btn main' : 'btn'} data-row=${id} href=${addressOf({ slug, page, id: to, query })}>${act}<span class="aloud">: ${title}</span></a></td>
      </tr>`)}</tbody></table></div></section>`;
}

function Hours({ hours, since, slug }) {
  const sum = hours.reduce((total, { count }) => total + count, 0);
  const failed = hours.reduce((total, hour) => total + hour.failed, 0);
  const most = hours.reduce((best, hour) => (hour.count > best.count ? hour : best));
  const clock = (from) => new Date(from).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
  const says = `${sum} ${sum === 1 ? 'call' : 'calls'} in the last 24 hours${sum ? `, most at ${clock(most.from)} with ${most.count}` : ''}${failed ? `; in ${failed} of them a tool failed` : ''}.`;
  return html`<section class="stack" aria-labelledby="h-hours"><div class="titled"><h2 id="h-hours">Last 24 hours</h2><a class="small" href=${addressOf({ slug, page: 'calls', query: { since: '24h' } })}>${sum} ${sum === 1 ? 'call' : 'calls'}</a>${failed > 0 && html`<a class="small" href=${addressOf({ slug, page: 'calls', query: { failed: true, since: '24h' } })}>${failed} with a failed tool</a>`}</div>
    <${Bars} bars=${hours.map(({ from, count, failed: bad }, place) => ({ word: clock(from), value: count, bad, label: place % 6 === 0 ? clock(from) : null }))} says=${says} head=${['Hour', 'Calls', 'With a failed tool']} />
    ${since && html`<p class="quiet small">More calls than are counted here came in before ${clock(since)}.</p>`}
  </section>`;
}
