// The mistakes of a text in words: each with its place, the next step, and a button that repairs it.

import { html } from '../htm-preact.js';
import { Icon } from '../shell/icons.js';
import { Status } from '../shell/status.js';

/** So many allowed values are shown. */
const MOST_ALLOWED = 12;

/** `2 errors, 1 warning` */
export function counted(mistakes) {
  const errors = mistakes.filter(({ severity }) => severity === 'error').length;
  const warnings = mistakes.length - errors;
  const parts = [[errors, 'error'], [warnings, 'warning']].filter(([count]) => count > 0);
  return parts.map(([count, word]) => `${count} ${word}${count === 1 ? '' : 's'}`).join(', ');
}

/** `repairs` gives the buttons `{word, act}` of a mistake. */
export function Mistakes({ of, dryRun, refused, onGo, repairs }) {
  const { late, error, again } = dryRun;
  const words = of.length > 0 ? counted(of) : late || error || refused ? '' : 'No mistake found';
  const kind = of.some(({ severity }) => severity === 'error') ? 'failed' : of.length > 0 ? 'limited' : 'completed';
  return html`<section aria-labelledby="h-mistakes" aria-busy=${late ? 'true' : null} data-mistakes=${late ? 'late' : error ? 'unknown' : counted(of) || 'none'}>
    <div class="titled"><h2 id="h-mistakes">Mistakes</h2><span role="status">${words && html`<${Status} of=${kind}>${words}<//>`}</span>${late && html`<span class="quiet small">Is being tried…</span>`}</div>
    ${refused && html`<p class="quiet">${refused}</p>`}
    ${error && html`<div class="say wait"><${Icon} name="wait" /><p><b>It could not be tried.</b> ${error.message}</p><div class="acts"><button type="button" class="btn" onClick=${again}>Try now</button></div></div>`}
    <ol class="mistakes">${of.map((mistake) => html`<${Mistake} key=${`${mistake.code} ${mistake.pointer} ${mistake.message}`} of=${mistake} onGo=${onGo} repairs=${repairs(mistake)} />`)}</ol>
  </section>`;
}

function Mistake({ of, onGo, repairs }) {
  const { severity, code, message, hint, allowed = [], allowed_more: unlisted = 0, place } = of;
  const more = unlisted + Math.max(0, allowed.length - MOST_ALLOWED);
  return html`<li class="diag ${severity === 'error' ? 'bad' : 'wait'}" data-diagnostic=${code}>
    <p class="chips"><${Status} of=${severity === 'error' ? 'failed' : 'limited'}>${severity === 'error' ? 'Error' : 'Warning'}<//><button type="button" class="go" data-go onClick=${() => onGo(place)}>Line ${place.line}, column ${place.column}</button></p>
    <p><bdi>${message}</bdi></p>${hint && html`<p class="quiet"><bdi>${hint}</bdi></p>`}
    ${allowed.length > 0 && html`<p class="quiet">Allowed: <bdi>${allowed.slice(0, MOST_ALLOWED).join(', ')}</bdi>${more > 0 && ` and ${more} more`}.</p>`}
    ${repairs.length > 0 && html`<p class="chips">${repairs.map(({ word, act }) => html`<button key=${word} type="button" class="btn" data-repair onClick=${act}>${word}</button>`)}</p>`}
  </li>`;
}
