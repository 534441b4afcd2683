// The receipt of an ended call: its effects, and requests not carried out.

import { html } from '../htm-preact.js';
import { Failed } from '../shell/list.js';
import { useLive } from '../shell/live.js';
import { Status, wordOf } from '../shell/status.js';
import { isFollowed } from './timeline.js';

const EVERY = 3_000;
const GROUPS = ['done', 'unknown', 'failed', 'not_done'];

export function Receipt({ call, api, slug, hrefOf }) {
  const { id } = call;
  const read = () => api.read(`calls/${encodeURIComponent(id)}/receipt`);
  const { data, error, at, again } = useLive(`receipt ${slug} ${id}`, read, (receipt) => (receipt?.final || !isFollowed(call) ? null : EVERY));
  if (error && !data) return html`<${Failed} what="The receipt" error=${error} at=${at} again=${again} />`;
  if (!data) return null;
  const lines = GROUPS.flatMap((group) => data[group]);
  const lookups = data.looked_up.length;
  return html`<section class="stack" aria-labelledby="h-receipt" data-receipt=${data.final ? 'final' : 'open'}>
    <h2 id="h-receipt">Receipt</h2>
    ${lines.length === 0
      ? html`<p class="quiet">No tool changed anything${lookups ? `; ${lookups === 1 ? 'one lookup' : `${lookups} lookups`} succeeded` : ''}.</p>`
      : html`<div class="sheet"><table class="rows">
          <thead><tr><th scope="col">Tool</th><th scope="col">Effect</th><th scope="col">Outcome</th><th scope="col">Why</th></tr></thead>
          <tbody>${lines.map((line) => html`<tr key=${line.execution_id}>
            <th scope="row" class="wrap"><a class="open" href=${hrefOf(line.execution_id)}><bdi>${line.label ?? 'A deleted tool'}</bdi></a></th>
            <td>${line.effect === null || line.effect === 'undeclared' ? 'Not declared' : wordOf(line.effect)}</td>
            <td><${Status} of=${line.status} /></td>
            <td class="wrap quiet"><bdi>${line.reason ?? '–'}</bdi></td>
          </tr>`)}</tbody>
        </table></div>`}
  </section>`;
}
