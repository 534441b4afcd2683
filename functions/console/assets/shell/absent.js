// In place of a detail that is gone, failed, or being loaded.

import { html } from '../htm-preact.js';
import { Failed, Nothing, Skeleton } from './list.js';
import { Main } from './main.js';
import { Refused } from './problems.js';

/** `word`: the noun; `live`: of `useLive`; `crumb`: to the list. */
export function Absent({ word, icon, crumb, live }) {
  const what = `The ${word}`;
  const gone = live.error instanceof Refused && live.error.status === 404;
  return html`<${Main} title=${word[0].toUpperCase() + word.slice(1)} crumb=${crumb}><div class="body">
    ${gone
      ? html`<${Nothing} icon=${icon} title=${`There is no such ${word}`}><p class="quiet">It was deleted, its retention has ended, or it belongs to another organization.</p><a class="btn" href=${crumb.href}>See all ${crumb.word.toLowerCase()}</a><//>`
      : live.error ? html`<${Failed} what=${what} error=${live.error} again=${live.again} />` : html`<${Skeleton} what=${what} />`}
  </div><//>`;
}
