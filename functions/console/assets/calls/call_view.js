// One call: its picture, the same as a table, and the chosen tool's request.

import { html, useState } from '../htm-preact.js';
import { clock, percent } from '../shell/axis.js';
import { Absent } from '../shell/absent.js';
import { Icon } from '../shell/icons.js';
import { Failed } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact, length, relative } from '../shell/moments.js';
import { useChosen } from '../shell/pane.js';
import { Request, triggerOf } from '../shell/request.js';
import { addressOf } from '../shell/route.js';
import { Status, wordOf } from '../shell/status.js';
import { dollars } from '../shell/money.js';
import { Picture } from './picture.js';
import { Receipt } from './receipt.js';
import { failedIn, isOver, lanesOf, readAgain } from './timeline.js';
import { callerOf, unprovenOf } from './words.js';

const OF_RESULTS = ['result_injected', 'result_failed', 'variable_set'];
const EVENTS = {
  call_received: 'Call received',
  call_placed: 'Call placed',
  twiml_answered: 'Answered',
  call_connected: 'Connected',
  context_injected: 'The model was told',
  context_failed: 'The model was not told',
  result_injected: 'The model was told a result',
  result_failed: 'The model was not told a result',
  variable_set: 'The agent began with a result',
  agent_spoke: 'Agent spoke',
  caller_spoke: 'Caller spoke',
  agent_hung: 'Agent did not answer',
  call_transferred: 'Transferred',
  destination_rang: 'Destination rang',
  transfer_ended: 'Transfer ended',
  call_ended: 'Ended',
  cost_reported: 'Cost reported',
};

export function CallView({ id, query, api, slug, agents, tools }) {
  const read = async () => {
    const [call, { items }] = await Promise.all([api.read(`calls/${encodeURIComponent(id)}`), api.read(`calls/${encodeURIComponent(id)}/executions`, { limit: 200 })]);
    return { call, executions: items };
  };
  const live = useLive(`${slug} ${id}`, read, (data) => (data === null ? 1_500 : readAgain(data.call)));
  const { data, error, at } = live;
  const crumb = { word: 'Calls', href: addressOf({ slug, page: 'calls' }) };
  if (!data) return html`<${Absent} word="call" icon="call" crumb=${crumb} live=${live} />`;
  const { call, executions } = data;
  const lanes = lanesOf(call);
  const failures = failedIn(lanes);
  const nameOf = ({ tool_id, label }) => label ?? tools.get(tool_id) ?? 'A tool';
  const chosen = query.execution ?? failures[0]?.id ?? null;
  const hrefOf = (execution) => addressOf({ slug, page: 'calls', id, query: { execution } });
  const bar = lanes.tools.flatMap(({ bars }) => bars).find((known) => known.id === chosen);
  return html`<${Main} title=${callerOf(call)} crumb=${crumb} status=${html`<${Status} of=${call.status} />`}>
    <div class="body" data-call=${id}>
      ${error && html`<${Failed} what="The call" error=${error} at=${at} again=${live.again} />`}
      <section aria-label="Facts">
        ${failures.length > 0 &&
        html`<div class="say bad" data-failures=${failures.length}><${Icon} name="bad" />
          <p><b>${nameOf(failures[0])} ${failures[0].status === 'failed' ? 'failed' : `ended as “${wordOf(failures[0].status)}”`} after ${length(failures[0].to)}.</b> <bdi>${failures[0].error}</bdi>
            ${failures.length > 1 && html` <span>${failures.length - 1} more did not succeed.</span>`}</p>
          <div class="acts"><a class="btn" href=${hrefOf(failures[0].id)} onClick=${() => document.getElementById('asked')?.focus()}>See what was asked</a></div>
        </div>`}
        ${unprovenOf(call) && html`<div class="say bad" data-unproven><${Icon} name="ask" /><p><b>${unprovenOf(call)}</b></p></div>`}
        <${Facts} slug=${slug} call=${call} lanes=${lanes} agents=${agents} />
      </section>
      <${Pictured} lanes=${lanes} nameOf=${nameOf} />
      <${Cost} call=${call} />
      ${isOver(call) && html`<${Receipt} call=${call} api=${api} slug=${slug} hrefOf=${hrefOf} />`}
      <div class="two wideleft">
        ${bar ? html`<${Asked} slug=${slug} call=${call} bar=${bar} execution=${executions.find((known) => known.id === chosen)} nameOf=${nameOf} from=${lanes.from} />` : html`<aside class="aside" aria-label="Tool"><p class="quiet">Choose a tool in the table to see what it was asked.</p></aside>`}
        <${Moments} call=${call} lanes=${lanes} nameOf=${nameOf} hrefOf=${hrefOf} chosen=${chosen} />
      </div>
    </div>
  <//>`;
}

function Facts({ slug, call, lanes, agents }) {
  const facts = [
    ['Agent', agents.get(call.agent_id) ?? '–'],
    [call.direction === 'outbound' ? 'Called from' : 'Number called', (call.direction === 'outbound' ? call.caller_phone_number : call.called_phone_number) ?? '–'],
    [call.direction === 'outbound' ? 'Placed' : 'Came in', call.created_at ? `${exact(call.created_at)}, ${relative(call.created_at)}` : '–'],
    ['Lasted', lanes.lost ? 'its end is not known' : lanes.ended ? length(call.duration_seconds === null ? lanes.span : call.duration_seconds * 1000) : 'goes on'],
    ['Ended because', call.ended_reason ?? '–'],
    ['Cost', dollars(call.cost)],
  ];
  const linked = [['Returned as', call.returned_as], ['Returned from', call.returned_from]].filter(([, other]) => other);
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd><bdi>${value}</bdi></dd></div>`)}
    ${linked.map(([name, other]) => html`<div><dt>${name}</dt><dd><a href=${addressOf({ slug, page: 'calls', id: other })}>another call</a></dd></div>`)}</dl>`;
}

function Pictured({ lanes, nameOf }) {
  const [open, set] = useState(false);
  return html`<section aria-labelledby="h-pic">
    <div class="titled"><h2 id="h-pic">What happened</h2>
      <div class="acts"><button type="button" class="btn bare" aria-pressed=${open} onClick=${() => set(!open)}>${open ? 'Leave silence out' : 'Show silence'}</button></div></div>
    <${Picture} lanes=${lanes} nameOf=${nameOf} open=${open} />
  </section>`;
}

function Cost({ call }) {
  const parts = Object.entries(call.timeline.findLast(({ event }) => event === 'cost_reported')?.parts ?? {}).filter(([, cost]) => cost > 0);
  const sum = parts.reduce((total, [, cost]) => total + cost, 0);
  if (sum === 0) return null;
  let before = 0;
  const shares = parts.sort(([, one], [, other]) => other - one).map(([name, cost], place) => {
    const x = before;
    before += cost / sum;
    return { name, cost, x, width: cost / sum, cls: `c${(place % 5) + 1}` };
  });
  return html`<section class="costs" aria-label="Cost">
    <span class="small">Cost <b>${dollars(call.cost)}</b></span>
    <svg width="100%" height="8" aria-hidden="true">${shares.map(({ x, width, cls }) => html`<rect class=${cls} x=${percent(x)} width=${percent(width)} height="8" />`)}</svg>
    <ul>${shares.map(({ name, cost, cls }) => html`<li><span class="sw ${cls}"></span>${name} <b>${dollars(cost)}</b></li>`)}</ul>
  </section>`;
}

/** Masked. */
function Asked({ slug, call, bar, execution, nameOf, from }) {
  const time = (since) => (since === null ? '–' : new Date(from + since).toISOString());
  return html`<aside class="aside stack" id="asked" tabindex="-1" ref=${useChosen(bar.id)} aria-labelledby="h-asked" data-execution=${bar.id}>
    <div class="withst"><h2 id="h-asked">${nameOf(bar)}</h2><${Status} of=${bar.status ?? (bar.from === null ? 'queued' : 'running')} /></div>
    <dl class="pairs">
      <div><dt>Called by</dt><dd>${triggerOf(bar.trigger)}</dd></div>
      ${bar.queued !== null && html`<div><dt>Queued</dt><dd>${exact(time(bar.queued))}</dd></div>`}
      <div><dt>Began</dt><dd>${bar.from === null ? 'not yet' : exact(time(bar.from))}</dd></div>
      <div><dt>Ran</dt><dd>${bar.to === null ? 'no end known' : length(bar.to - bar.from)}</dd></div>
    </dl>
    ${bar.error && html`<div class="say bad"><${Icon} name="bad" /><p><bdi>${bar.error}</bdi></p></div>`}
    ${execution
      ? html`<${Request} execution=${execution} /><a class="btn" data-now-link href=${addressOf({ slug, page: 'executions', id: bar.id, query: { call: call.id } })}>See what would be sent now</a>`
      : html`<p class="quiet">What it was asked is not kept any more.</p>`}
  </aside>`;
}

function Moments({ call, lanes, nameOf, hrefOf, chosen }) {
  // Where it began.
  const bars = new Map(lanes.tools.flatMap(({ bars }) => bars).map((bar) => [bar.id, bar]));
  const seen = new Set();
  const rows = call.timeline.filter(({ execution_id: id, event }) => {
    if (!id || OF_RESULTS.includes(event)) return true;
    if (seen.has(id)) return false;
    seen.add(id);
    return true;
  });
  return html`<section class="stack" aria-labelledby="h-moments"><h2 id="h-moments">The same as a table</h2>
    ${!call.timeline_complete && html`<p class="quiet small">Some tools are not shown: there were more than a thousand, or a newer version recorded them.</p>`}
    <div class="sheet"><table class="rows moments">
      <thead><tr><th scope="col" class="num c-at">After</th><th scope="col">What</th><th scope="col" class="c-how">What came of it</th><th scope="col" class="num c-clock">Clock</th></tr></thead>
      <tbody>${rows.map((moment) => html`<${Row} moment=${moment} bar=${OF_RESULTS.includes(moment.event) ? null : bars.get(moment.execution_id)} from=${lanes.from} nameOf=${nameOf} hrefOf=${hrefOf} chosen=${chosen} />`)}</tbody>
    </table></div></section>`;
}

function Row({ moment, bar, from, nameOf, hrefOf, chosen }) {
  const since = Date.parse(moment.at) - from;
  const waited = bar && bar.queued !== null && bar.from !== null ? `waited ${length(bar.from - bar.queued)}, ` : '';
  const how = bar
    ? html`<${Status} of=${bar.status ?? (bar.from === null ? 'queued' : 'running')} /> <span class="quiet">${waited}${bar.to === null ? 'no end known' : `ran ${length(bar.to - bar.from)}`}</span>`
    : html`<span class="quiet"><bdi>${saysOf(moment, nameOf)}</bdi></span>`;
  return html`<tr>
    <td class="num c-at">${clock(since)}</td>
    <th scope="row" class="wrap">${bar ? html`<a class="open" data-row=${bar.id} href=${hrefOf(bar.id)} aria-current=${bar.id === chosen ? 'true' : null}><bdi>${nameOf(bar)}</bdi></a>` : (EVENTS[moment.event] ?? wordOf(moment.event))}</th>
    <td class="c-how wrap">${how}</td>
    <td class="quiet num c-clock">${new Date(moment.at).toLocaleTimeString('en-GB')}</td>
  </tr>`;
}

function saysOf(moment, nameOf) {
  if (moment.event === 'cost_reported') return dollars(moment.cost);
  if (moment.event === 'call_transferred') return moment.to ? `to ${/^[as]/.test(moment.to) ? 'an' : 'a'} ${moment.to}` : '';
  if (moment.event === 'destination_rang' || moment.event === 'transfer_ended') return `${wordOf(moment.outcome ?? 'ringing')}${moment.returned_as ? ', the caller returned to the agent' : ''}`;
  if (moment.event === 'result_injected') return `what ${nameOf(moment)} found`;
  if (moment.event === 'variable_set') return `${moment.name}: what ${nameOf(moment)} found`;
  if (moment.event === 'result_failed') return `what ${nameOf(moment)} found: ${moment.reason}`;
  return moment.reason ?? '';
}
