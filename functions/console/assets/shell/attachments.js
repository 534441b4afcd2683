// A thing's attachments, and the choice of another one.

import { html, useState } from '../htm-preact.js';
import { Failed, Skeleton } from './list.js';
import { useLive } from './live.js';
import { Act, Problem, useAct } from './acting.js';
import { restOf } from './filtered.js';
import { pages } from './pages.js';

const MOST = 200;

/** `{value, word}` of fitting things; empty until the answer comes. The last one may only say that there are `more`. */
export function useChoices(api, slug, path, wordOf, valueOf = ({ id }) => id, fits = () => true) {
  const { data } = useLive(`${slug} choices ${path}`, () => pages((cursor) => api.read(path, { limit: MOST, cursor })));
  const known = (data?.items ?? []).filter(fits).map((item) => ({ value: valueOf(item), word: wordOf(item) }));
  return [...known, ...restOf(data).map((word) => ({ value: '', word, more: true }))];
}

/** `has`: attachments of `useLive`; `all`: choices; `attach` and `detach` take an id. */
export function Attachments({ id, title, what, has, all, wordOf, remarkOf = () => null, hrefOf, attach, detach, refused, empty }) {
  const [chosen, choose] = useState('');
  const { busy, problem, act } = useAct();
  const items = has.data?.items ?? [];
  const others = all.filter(({ value }) => !items.some((item) => item.id === value));
  const change = async (does) => {
    if (await act(does)) choose('');
    has.again();
  };
  return html`<section class="stack" aria-labelledby="${id}-h" data-attachments=${id}><h2 id="${id}-h">${title}</h2>
    ${has.error && !has.data && html`<${Failed} what=${title} error=${has.error} again=${has.again} />`}
    ${!has.data && !has.error && html`<${Skeleton} what=${title} />`}
    ${has.data && items.length === 0 && html`<p class="quiet">${empty}</p>`}
    <ul class="tools">${items.map((item) => html`<li key=${item.id} data-attached=${item.id}><a href=${hrefOf(item)}><bdi>${wordOf(item)}</bdi></a><${Act} id="detach-${item.id}" kind="bare" refused=${refused && ' '} busy=${busy} onClick=${() => change(() => detach(item.id))}>Detach<span class="aloud"> ${wordOf(item)}</span><//>${remarkOf(item) && html`<p class="quiet">${remarkOf(item)}</p>`}</li>`)}</ul>
    ${others.length > 0 && html`<div class="made chips"><select id="${id}-choice" aria-label=${`${what} to attach`} value=${chosen} disabled=${Boolean(refused)} onChange=${({ target }) => choose(target.value)}>
        <option value="">Choose ${what}…</option>${others.map(({ value, word, more }) => html`<option key=${value} value=${value} disabled=${more}>${word}</option>`)}</select>
      <${Act} id="${id}-attach" refused=${refused} busy=${busy || chosen === ''} onClick=${() => change(() => attach(chosen))}>Attach<//></div>`}
    <${Problem} of=${problem} /></section>`;
}
