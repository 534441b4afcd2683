// The use of each budget, as bars.

import { html } from '../htm-preact.js';
import { exact } from '../shell/moments.js';

export function Meters({ budgets }) {
  return html`<ul class="meters">${budgets.map(({ id, word, used, limit, share, until }) => html`<li key=${id}>
    <p><span>${word}</span><span><b>${used}</b> of ${limit}</span></p>
    <svg class="meter ${share >= 0.8 ? 'near' : ''}" width="100%" height="8" role="img" aria-label=${`${Math.round(share * 100)} percent used`}>
      <rect class="all" width="100%" height="8" rx="4" /><rect class="used" width=${`${(share * 100).toFixed(1)}%`} height="8" rx="4" />
    </svg>
    <p class="tiny quiet"><span>${Math.round(share * 100)} % used${share >= 0.8 ? ', near its end' : ''}</span><span>begins anew ${exact(until)}</span></p>
  </li>`)}</ul>`;
}
