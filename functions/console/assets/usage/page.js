// The use of the organization's budgets, now and by day.

import { html } from '../htm-preact.js';
import { Bars } from '../shell/bars.js';
import { Choices, Failed, Skeleton } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact } from '../shell/moments.js';
import { addressOf } from '../shell/route.js';
import { budgetsOf, chartOf, SERIES } from './budgets.js';
import { Meters } from './meters.js';

const EVERY = 10_000;
const DAYS = 30;

export function View({ api, slug, at: { query } }) {
  const { data, error, at, again } = useLive(slug, () => api.read('usage', { days: DAYS }), () => EVERY);
  const budgets = budgetsOf(data);
  const of = SERIES.some(({ id }) => id === query.of) ? query.of : SERIES[0].id;
  const chart = data?.days && chartOf(data.days, of);
  return html`<${Main} title="Usage"><div class="body" data-usage>
    ${error && html`<${Failed} what="Usage" error=${error} at=${at} again=${again} />`}
    ${!data && !error && html`<${Skeleton} what="Usage" />`}
    ${data && html`
      ${data.days?.length > 0 && html`<section class="stack" aria-labelledby="h-days"><div class="titled"><h2 id="h-days">Last ${data.days.length} days</h2>
        <div class="acts"><${Choices} label="What is counted" of=${SERIES.map(({ id, word }) => [id, word])} to=${(of) => addressOf({ slug, page: 'usage', query: { of } })} chosen=${of} /></div></div>
        ${chart ? html`<${Bars} ...${chart} />` : html`<p class="quiet">Nothing was counted on these days.</p>`}</section>`}
      <section class="stack meterbox" aria-labelledby="h-meters"><h2 id="h-meters">Budgets</h2><${Meters} budgets=${budgets} /></section>
      <section class="stack" aria-labelledby="h-table"><h2 id="h-table">The same as a table</h2><div class="sheet"><table>
        <thead><tr><th scope="col">Budget</th><th scope="col" class="num">Used</th><th scope="col" class="num">Limit</th><th scope="col" class="wideonly">Begins anew</th><th scope="col" class="wideonly">At its end</th></tr></thead>
        <tbody>${budgets.map((budget) => html`<tr key=${budget.id}><th scope="row" class="wrap">${budget.word}</th><td class="num">${budget.used}</td><td class="num">${budget.limit}</td><td class="wrap wideonly">${exact(budget.until)}</td><td class="wrap quiet wideonly">${budget.beyond}</td></tr>`)}</tbody>
      </table></div></section>
      <p class="quiet small">Hours, days and months are those of the clock, UTC.</p>`}
  </div><//>`;
}
