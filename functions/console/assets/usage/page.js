// The use of the organization's budgets: now, and by day.

import { html } from '../htm-preact.js';
import { Failed, Skeleton } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Main } from '../shell/main.js';
import { exact } from '../shell/moments.js';
import { budgetsOf } from './budgets.js';
import { Meters } from './meters.js';

const EVERY = 10_000;

export function View({ api, slug }) {
  const { data, error, at, again } = useLive(slug, () => api.read('usage'), () => EVERY);
  const budgets = budgetsOf(data);
  return html`<${Main} title="Usage"><div class="body" data-usage>
    ${error && html`<${Failed} what="Usage" error=${error} at=${at} again=${again} />`}
    ${!data && !error && html`<${Skeleton} what="Usage" />`}
    ${data && html`
      <section class="stack meterbox" aria-labelledby="h-meters"><h2 id="h-meters">Budgets</h2><${Meters} budgets=${budgets} /></section>
      <section class="stack" aria-labelledby="h-table"><h2 id="h-table">The same as a table</h2><div class="sheet"><table>
        <thead><tr><th scope="col">Budget</th><th scope="col" class="num">Used</th><th scope="col" class="num">Limit</th><th scope="col" class="wideonly">Begins anew</th><th scope="col" class="wideonly">At its end</th></tr></thead>
        <tbody>${budgets.map((budget) => html`<tr key=${budget.id}><th scope="row" class="wrap">${budget.word}</th><td class="num">${budget.used}</td><td class="num">${budget.limit}</td><td class="wrap wideonly">${exact(budget.until)}</td><td class="wrap quiet wideonly">${budget.beyond}</td></tr>`)}</tbody>
      </table></div></section>
      <p class="quiet small">Hours and months are those of the clock, UTC.</p>`}
  </div><//>`;
}
